package shapes

// hybrid is the configuration of models where most layers keep a constant state.
type hybrid struct {
	config
	conv, state, groups, rank, inner int64
	attentionAt                      func(i int64) bool
}

func (c hybrid) ssmKeys(b builder) {
	b.set("ssm.conv_kernel", int(c.conv))
	b.set("ssm.state_size", int(c.state))
	b.set("ssm.group_count", int(c.groups))
	b.set("ssm.time_step_rank", int(c.rank))
	b.set("ssm.inner_size", int(c.inner))
}

// everyFourth is the rule of the Qwen hybrids.
func everyFourth(i int64) bool { return (i+1)%4 == 0 }

// deltaNet is a Qwen hybrid: three layers of gated delta rule to each one of attention.
func deltaNet(c hybrid) Model {
	c.attentionAt = everyFourth
	b := c.begin()
	b.set("attention.head_count_kv", int(c.kvHeads))
	b.set("rope.dimension_count", int(c.head/4))
	if c.arch != "qwen3next" {
		b.set("rope.dimension_sections", []uint32{11, 11, 10, 0})
	}
	if c.sharedFF > 0 {
		b.set("expert_shared_feed_forward_length", int(c.sharedFF))
	}
	b.set("full_attention_interval", 4)
	c.ssmKeys(b)
	for i := range c.layers + c.nextn {
		b.vec(blk(i, "attn_norm.weight"), c.width)
		b.vec(blk(i, "post_attention_norm.weight"), c.width)
		if c.attentionAt(i) || i >= c.layers {
			b.mat(blk(i, "attn_q"), c.width, 2*c.heads*c.head)
			b.mat(blk(i, "attn_k"), c.width, c.kvHeads*c.head)
			c.down(b, i, "attn_v", c.width, c.kvHeads*c.head)
			b.mat(blk(i, "attn_output"), c.heads*c.head, c.width)
			c.headNorms(b, i)
		} else {
			c.linear(b, i)
		}
		if c.experts == 0 {
			c.gated(b, i)
		} else {
			c.mixture(b, i)
			b.vec(blk(i, "ffn_gate_inp_shexp.weight"), c.width)
			c.shared(b, i)
		}
		if i >= c.layers {
			c.predicting(b, i)
		}
	}
	return *b.m
}

// predicting are the tensors of a layer that predicts the token after the next.
func (c config) predicting(b builder, i int64) {
	b.mat(blk(i, "nextn.eh_proj"), 2*c.width, c.width)
	for _, name := range []string{"enorm", "hnorm", "shared_head_norm"} {
		b.vec(blk(i, "nextn."+name+".weight"), c.width)
	}
}

func (c hybrid) linear(b builder, i int64) {
	keys := c.state * c.groups
	values := c.state * c.rank
	b.mat(blk(i, "attn_qkv"), c.width, 2*keys+values)
	b.mat(blk(i, "attn_gate"), c.width, values)
	b.vec(blk(i, "ssm_conv1d.weight"), c.conv, 2*keys+values)
	b.vec(blk(i, "ssm_dt.bias"), c.rank)
	b.vec(blk(i, "ssm_a"), c.rank)
	if c.arch == "qwen3next" {
		b.mat(blk(i, "ssm_ba"), c.width, 2*c.rank)
	} else {
		b.mat(blk(i, "ssm_beta"), c.width, c.rank)
		b.mat(blk(i, "ssm_alpha"), c.width, c.rank)
	}
	b.vec(blk(i, "ssm_norm.weight"), c.state)
	b.mat(blk(i, "ssm_out"), values, c.width)
}

// mamba2 is a Granite hybrid: a few layers of attention among state-space layers.
func mamba2(c hybrid) Model {
	b := c.begin()
	perLayer := make([]uint32, c.layers)
	for i := range perLayer {
		if c.attentionAt(int64(i)) {
			perLayer[i] = uint32(c.kvHeads)
		}
	}
	b.set("attention.head_count_kv", perLayer)
	b.set("expert_shared_feed_forward_length", int(c.sharedFF))
	b.set("rope.scaling.finetuned", false)
	c.ssmKeys(b)
	for i := range c.layers {
		if c.attentionAt(i) {
			c.attention(b, i)
		} else {
			c.stateSpace(b, i)
		}
		b.vec(blk(i, "ffn_norm.weight"), c.width)
		c.mixture(b, i)
		c.shared(b, i)
	}
	return *b.m
}

func (c hybrid) stateSpace(b builder, i int64) {
	mixed := c.inner + 2*c.groups*c.state
	b.vec(blk(i, "attn_norm.weight"), c.width)
	b.mat(blk(i, "ssm_in"), c.width, c.inner+mixed+c.rank)
	b.vec(blk(i, "ssm_conv1d.weight"), c.conv, mixed)
	b.vec(blk(i, "ssm_conv1d.bias"), mixed)
	b.vec(blk(i, "ssm_dt.bias"), c.rank)
	b.vec(blk(i, "ssm_a"), 1, c.rank)
	b.vec(blk(i, "ssm_d"), 1, c.rank)
	b.vec(blk(i, "ssm_norm.weight"), c.inner/c.groups, c.groups)
	b.mat(blk(i, "ssm_out"), c.inner, c.width)
}
