package shapes

// latent is the configuration of multi-head latent attention.
type latent struct {
	config
	qRank, kvRank   int64
	nope, rope, val int64
	old             bool // a file from before the latent keys: full heads in the cache
}

func deepseek(c latent) Model {
	b := c.begin()
	c.keys(b)
	for i := range c.layers + c.nextn {
		c.block(b, i)
		if i == 0 {
			c.dense(b, i)
			continue
		}
		b.vec(blk(i, "ffn_norm.weight"), c.width)
		c.mixture(b, i)
		if c.qRank > 0 {
			b.vec(blk(i, "exp_probs_b.bias"), c.experts)
		}
		c.shared(b, i)
	}
	return *b.m
}

func (c latent) keys(b builder) {
	b.set("rope.dimension_count", int(c.rope))
	b.set("attention.kv_lora_rank", int(c.kvRank))
	if c.qRank > 0 {
		b.set("attention.q_lora_rank", int(c.qRank))
		b.set("expert_gating_func", 2)
	}
	b.set("leading_dense_block_count", 1)
	b.set("expert_shared_count", int(c.sharedFF/c.expertFF))
	b.set("expert_weights_scale", 1.0)
	if c.old {
		b.set("attention.head_count_kv", int(c.heads))
		b.set("attention.key_length", int(c.nope+c.rope))
		b.set("attention.value_length", int(c.val))
		return
	}
	b.set("attention.head_count_kv", 1)
	b.set("attention.key_length", int(c.kvRank+c.rope))
	b.set("attention.value_length", int(c.kvRank))
	b.set("attention.key_length_mla", int(c.nope+c.rope))
	b.set("attention.value_length_mla", int(c.val))
}

func (c latent) block(b builder, i int64) {
	b.vec(blk(i, "attn_norm.weight"), c.width)
	if c.qRank > 0 {
		b.mat(blk(i, "attn_q_a"), c.width, c.qRank)
		b.vec(blk(i, "attn_q_a_norm.weight"), c.qRank)
		b.mat(blk(i, "attn_q_b"), c.qRank, c.heads*(c.nope+c.rope))
	} else {
		b.mat(blk(i, "attn_q"), c.width, c.heads*(c.nope+c.rope))
	}
	b.mat(blk(i, "attn_kv_a_mqa"), c.width, c.kvRank+c.rope)
	b.vec(blk(i, "attn_kv_a_norm.weight"), c.kvRank)
	if c.old {
		b.mat(blk(i, "attn_kv_b"), c.kvRank, c.heads*(c.nope+c.val))
	} else {
		b.add(q8_0, blk(i, "attn_k_b.weight"), c.nope, c.kvRank, c.heads)
		b.add(q8_0, blk(i, "attn_v_b.weight"), c.kvRank, c.val, c.heads)
	}
	b.mat(blk(i, "attn_output"), c.heads*c.val, c.width)
}
