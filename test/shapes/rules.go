package shapes

// Rules lists small made-up models of further architectures. Their sizes are nobody's; what they are for is the rule
// by which each architecture keeps its cache and its state.
func Rules() []Model {
	base := config{layers: 8, width: 512, heads: 8, kvHeads: 2, head: 64, ff: 1024, vocab: 4096, context: 262144}
	named := func(name, arch string) config {
		c := base
		c.name, c.arch = name, arch
		return c
	}
	return []Model{
		cohere2(named("every fourth keeps everything", "cohere2")),
		gemma4(named("heads of two sizes, later layers share", "gemma4")),
		olmo2(named("plain", "olmo2")),
		lfm2(named("short convolutions", "lfm2")),
		nemotron(hybrid{config: named("attention, state or neither", "nemotron_h"), conv: 4, state: 64, groups: 2, rank: 16, inner: 1024}),
		falcon(hybrid{config: named("attention and state in each layer", "falcon-h1"), conv: 4, state: 64, groups: 1, rank: 16, inner: 1024}),
	}
}

func cohere2(c config) Model {
	c.tied = true
	b := c.begin()
	b.set("attention.head_count_kv", int(c.kvHeads))
	b.set("attention.layer_norm_epsilon", 1e-5)
	b.set("attention.sliding_window", 1000)
	b.set("logit_scale", 0.25)
	b.set("rope.dimension_count", int(c.head))
	for i := range c.layers {
		c.attention(b, i)
		c.gated(b, i)
	}
	return *b.m
}

func gemma4(c config) Model {
	c.tied, c.head = true, 128
	b := c.begin()
	b.set("attention.head_count_kv", []uint32{2, 2, 2, 1, 2, 2, 2, 1})
	b.set("attention.sliding_window", 1000)
	b.set("attention.sliding_window_pattern", []bool{true, true, true, false, true, true, true, false})
	b.set("attention.shared_kv_layers", 4)
	b.set("attention.key_length_swa", 64)
	b.set("attention.value_length_swa", 64)
	b.set("embedding_length_per_layer_input", 0)
	b.set("rope.dimension_count", 128)
	b.set("rope.dimension_count_swa", 64)
	for i := range c.layers {
		l := c
		if i%4 != 3 {
			l.head = 64
		} else {
			l.kvHeads = 1
		}
		l.attention(b, i)
		l.headNorms(b, i)
		b.vec(blk(i, "post_attention_norm.weight"), c.width)
		l.dense(b, i)
		b.vec(blk(i, "post_ffw_norm.weight"), c.width)
	}
	b.vec("rope_freqs.weight", 64)
	return *b.m
}

func olmo2(c config) Model {
	b := c.begin()
	b.set("attention.head_count_kv", int(c.kvHeads))
	for i := range c.layers {
		b.mat(blk(i, "attn_q"), c.width, c.heads*c.head)
		b.mat(blk(i, "attn_k"), c.width, c.kvHeads*c.head)
		c.down(b, i, "attn_v", c.width, c.kvHeads*c.head)
		b.mat(blk(i, "attn_output"), c.heads*c.head, c.width)
		b.vec(blk(i, "attn_q_norm.weight"), c.heads*c.head)
		b.vec(blk(i, "attn_k_norm.weight"), c.kvHeads*c.head)
		b.vec(blk(i, "post_attention_norm.weight"), c.width)
		b.vec(blk(i, "post_ffw_norm.weight"), c.width)
		c.gated(b, i)
	}
	return *b.m
}

func lfm2(c config) Model {
	const kernel = 3
	c.tied = true
	b := c.begin()
	b.set("attention.head_count_kv", []uint32{0, 0, 2, 0, 0, 2, 0, 2})
	b.set("shortconv.l_cache", kernel)
	b.m.tensors = b.m.tensors[:1] // the last norm goes by another name
	b.vec("token_embd_norm.weight", c.width)
	for i := range c.layers {
		c.dense(b, i)
		if i == 2 || i == 5 || i == 7 {
			c.attention(b, i)
			c.headNorms(b, i)
			continue
		}
		b.vec(blk(i, "attn_norm.weight"), c.width)
		b.vec(blk(i, "shortconv.conv.weight"), kernel, c.width)
		b.mat(blk(i, "shortconv.in_proj"), c.width, 3*c.width)
		b.mat(blk(i, "shortconv.out_proj"), c.width, c.width)
	}
	return *b.m
}

// nemotron has one thing a layer: a state, attention, or a feed-forward step.
func nemotron(c hybrid) Model {
	kinds := "M-M*-M*-"
	heads, wide := make([]uint32, len(kinds)), make([]uint32, len(kinds))
	for i, kind := range kinds {
		switch kind {
		case '*':
			heads[i] = uint32(c.kvHeads)
		case '-':
			wide[i] = uint32(c.ff)
		}
	}
	ff := c.ff
	c.ff = 0
	b := c.begin()
	b.drop("feed_forward_length")
	c.ff = ff
	b.set("feed_forward_length", wide)
	b.set("attention.layer_norm_epsilon", 1e-5)
	b.set("attention.head_count_kv", heads)
	c.ssmKeys(b)
	for i, kind := range kinds {
		i := int64(i)
		switch kind {
		case 'M':
			c.stateSpace(b, i)
		case '*':
			c.attention(b, i)
		default:
			b.vec(blk(i, "attn_norm.weight"), c.width)
			c.down(b, i, "ffn_down", c.ff, c.width)
			b.mat(blk(i, "ffn_up"), c.width, c.ff)
		}
	}
	return *b.m
}

func falcon(c hybrid) Model {
	b := c.begin()
	b.set("attention.head_count_kv", int(c.kvHeads))
	b.set("attention.key_length", int(c.head))
	b.set("attention.value_length", int(c.head))
	c.ssmKeys(b)
	for i := range c.layers {
		c.stateSpace(b, i)
		b.mat(blk(i, "attn_q"), c.width, c.heads*c.head)
		b.mat(blk(i, "attn_k"), c.width, c.kvHeads*c.head)
		b.mat(blk(i, "attn_v"), c.width, c.kvHeads*c.head)
		b.mat(blk(i, "attn_output"), c.heads*c.head, c.width)
		b.vec(blk(i, "ffn_norm"), c.width)
		c.gated(b, i)
	}
	return *b.m
}
