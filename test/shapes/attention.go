package shapes

// config is what the published configurations have in common.
type config struct {
	name, arch         string
	layers, width      int64
	heads, kvHeads     int64
	head               int64 // size of one
	ff                 int64
	vocab, context     int64
	experts, used      int64
	expertFF, sharedFF int64
	tied               bool // no output matrix of its own
	nextn              int64
}

// begin writes the keys and tensors that every architecture has.
func (c config) begin() builder {
	b := start(c.name, c.arch)
	b.set("block_count", int(c.layers+c.nextn))
	b.set("context_length", int(c.context))
	b.set("embedding_length", int(c.width))
	b.set("feed_forward_length", int(c.ff))
	b.set("attention.head_count", int(c.heads))
	b.set("vocab_size", int(c.vocab))
	b.set("attention.layer_norm_rms_epsilon", 1e-6)
	b.set("rope.freq_base", 1e6)
	if c.head > 0 && c.head*c.heads != c.width {
		b.set("attention.key_length", int(c.head))
		b.set("attention.value_length", int(c.head))
	}
	if c.experts > 0 {
		b.set("expert_count", int(c.experts))
		b.set("expert_used_count", int(c.used))
	}
	if c.expertFF > 0 {
		b.set("expert_feed_forward_length", int(c.expertFF))
	}
	if c.nextn > 0 {
		b.set("nextn_predict_layers", int(c.nextn))
	}
	b.mat("token_embd", c.width, c.vocab)
	b.vec("output_norm.weight", c.width)
	if !c.tied {
		b.more("output", c.width, c.vocab)
	}
	return b
}

// extra says whether the Q4_K_M recipe gives a layer's sensitive matrices more bits.
func (c config) extra(i int64) bool {
	return i < c.layers/8 || i >= 7*c.layers/8 || (i-c.layers/8)%3 == 2
}

func (c config) down(b builder, i int64, name string, dims ...int64) {
	if c.extra(i) {
		b.more(blk(i, name), dims...)
		return
	}
	b.mat(blk(i, name), dims...)
}

// attention is the usual block: queries, keys and values apart.
func (c config) attention(b builder, i int64) {
	b.vec(blk(i, "attn_norm.weight"), c.width)
	b.mat(blk(i, "attn_q"), c.width, c.heads*c.head)
	b.mat(blk(i, "attn_k"), c.width, c.kvHeads*c.head)
	c.down(b, i, "attn_v", c.width, c.kvHeads*c.head)
	b.mat(blk(i, "attn_output"), c.heads*c.head, c.width)
}

func (c config) headNorms(b builder, i int64) {
	b.vec(blk(i, "attn_q_norm.weight"), c.head)
	b.vec(blk(i, "attn_k_norm.weight"), c.head)
}

// dense is the usual gated feed-forward block.
func (c config) dense(b builder, i int64) {
	b.vec(blk(i, "ffn_norm.weight"), c.width)
	c.gated(b, i)
}

func (c config) gated(b builder, i int64) {
	b.mat(blk(i, "ffn_gate"), c.width, c.ff)
	c.down(b, i, "ffn_down", c.ff, c.width)
	b.mat(blk(i, "ffn_up"), c.width, c.ff)
}

// mixture is a block of routed experts.
func (c config) mixture(b builder, i int64) {
	b.vec(blk(i, "ffn_gate_inp.weight"), c.width, c.experts)
	b.mat(blk(i, "ffn_gate_exps"), c.width, c.expertFF, c.experts)
	c.down(b, i, "ffn_down_exps", c.expertFF, c.width, c.experts)
	b.mat(blk(i, "ffn_up_exps"), c.width, c.expertFF, c.experts)
}

func (c config) shared(b builder, i int64) {
	b.mat(blk(i, "ffn_gate_shexp"), c.width, c.sharedFF)
	c.down(b, i, "ffn_down_shexp", c.sharedFF, c.width)
	b.mat(blk(i, "ffn_up_shexp"), c.width, c.sharedFF)
}

func llama(c config) Model {
	b := c.begin()
	b.set("attention.head_count_kv", int(c.kvHeads))
	b.set("rope.dimension_count", int(c.head))
	if c.arch == "mistral3" {
		b.set("attention.temperature_scale", 0.1)
	}
	for i := range c.layers {
		c.attention(b, i)
		if c.experts > 0 {
			b.vec(blk(i, "ffn_norm.weight"), c.width)
			c.expertFF = c.ff
			c.mixture(b, i)
			continue
		}
		c.dense(b, i)
	}
	return *b.m
}

func qwen2(c config) Model {
	b := c.begin()
	b.set("attention.head_count_kv", int(c.kvHeads))
	for i := range c.layers {
		c.attention(b, i)
		b.vec(blk(i, "attn_q.bias"), c.heads*c.head)
		b.vec(blk(i, "attn_k.bias"), c.kvHeads*c.head)
		b.vec(blk(i, "attn_v.bias"), c.kvHeads*c.head)
		c.dense(b, i)
	}
	return *b.m
}

func qwen3(c config) Model {
	b := c.begin()
	b.set("attention.head_count_kv", int(c.kvHeads))
	for i := range c.layers {
		c.attention(b, i)
		c.headNorms(b, i)
		if c.experts > 0 {
			b.vec(blk(i, "ffn_norm.weight"), c.width)
			c.mixture(b, i)
			continue
		}
		c.dense(b, i)
	}
	return *b.m
}

func gptOSS(c config) Model {
	b := c.begin()
	b.set("attention.head_count_kv", int(c.kvHeads))
	b.set("attention.sliding_window", 128)
	q := c.heads * c.head
	for i := range c.layers {
		c.attention(b, i)
		b.vec(blk(i, "post_attention_norm.weight"), c.width)
		b.vec(blk(i, "attn_q.bias"), q)
		b.vec(blk(i, "attn_k.bias"), c.kvHeads*c.head)
		b.vec(blk(i, "attn_v.bias"), c.kvHeads*c.head)
		b.vec(blk(i, "attn_output.bias"), c.width)
		b.vec(blk(i, "attn_sinks.weight"), c.heads)
		b.vec(blk(i, "ffn_gate_inp.weight"), c.width, c.experts)
		b.vec(blk(i, "ffn_gate_inp.bias"), c.experts)
		for _, name := range []string{"ffn_gate_exps", "ffn_up_exps"} {
			b.add(mxfp4, blk(i, name+".weight"), c.width, c.expertFF, c.experts)
			b.vec(blk(i, name+".bias"), c.expertFF, c.experts)
		}
		b.add(mxfp4, blk(i, "ffn_down_exps.weight"), c.expertFF, c.width, c.experts)
		b.vec(blk(i, "ffn_down_exps.bias"), c.width, c.experts)
	}
	return *b.m
}

func gemma(c config, window int) Model {
	b := c.begin()
	b.set("attention.head_count_kv", int(c.kvHeads))
	b.set("attention.sliding_window", window)
	for i := range c.layers {
		c.attention(b, i)
		if c.arch == "gemma3" {
			c.headNorms(b, i)
		}
		b.vec(blk(i, "post_attention_norm.weight"), c.width)
		c.dense(b, i)
		b.vec(blk(i, "post_ffw_norm.weight"), c.width)
	}
	return *b.m
}

// phi keeps queries, keys and values in one matrix, and both halves of the gate in another.
func phi(c config) Model {
	b := c.begin()
	b.set("attention.head_count_kv", int(c.kvHeads))
	b.set("rope.dimension_count", int(c.head))
	for i := range c.layers {
		b.vec(blk(i, "attn_norm.weight"), c.width)
		b.mat(blk(i, "attn_qkv"), c.width, (c.heads+2*c.kvHeads)*c.head)
		b.mat(blk(i, "attn_output"), c.heads*c.head, c.width)
		b.vec(blk(i, "ffn_norm.weight"), c.width)
		b.mat(blk(i, "ffn_up"), c.width, 2*c.ff)
		c.down(b, i, "ffn_down", c.ff, c.width)
	}
	return *b.m
}

func glm4moe(c config) Model {
	b := c.begin()
	b.set("attention.head_count_kv", int(c.kvHeads))
	b.set("leading_dense_block_count", 1)
	b.set("expert_shared_count", 1)
	b.set("expert_shared_feed_forward_length", int(c.sharedFF))
	b.set("expert_gating_func", 2)
	b.set("rope.dimension_count", int(c.head/2))
	for i := range c.layers + c.nextn {
		c.attention(b, i)
		b.vec(blk(i, "attn_q.bias"), c.heads*c.head)
		b.vec(blk(i, "attn_k.bias"), c.kvHeads*c.head)
		b.vec(blk(i, "attn_v.bias"), c.kvHeads*c.head)
		b.vec(blk(i, "post_attention_norm.weight"), c.width)
		if i == 0 {
			c.gated(b, i)
		} else {
			c.mixture(b, i)
			b.vec(blk(i, "exp_probs_b.bias"), c.experts)
			c.shared(b, i)
		}
		if i >= c.layers {
			c.predicting(b, i)
		}
	}
	return *b.m
}
