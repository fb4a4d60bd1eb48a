package shapes

// All lists the models, by their published configurations.
func All() []Model {
	return append(plain(), special()...)
}

func plain() []Model {
	return []Model{
		llama(config{name: "Llama 3.1 8B", arch: "llama", layers: 32, width: 4096, heads: 32, kvHeads: 8, head: 128,
			ff: 14336, vocab: 128256, context: 131072}),
		llama(config{name: "DeepSeek-Coder 6.7B", arch: "llama", layers: 32, width: 4096, heads: 32, kvHeads: 32, head: 128,
			ff: 11008, vocab: 32256, context: 16384}),
		llama(config{name: "Mixtral 8x7B", arch: "llama", layers: 32, width: 4096, heads: 32, kvHeads: 8, head: 128,
			ff: 14336, vocab: 32000, context: 32768, experts: 8, used: 2}),
		llama(config{name: "Devstral Small 2 24B", arch: "mistral3", layers: 40, width: 5120, heads: 32, kvHeads: 8, head: 128,
			ff: 32768, vocab: 131072, context: 393216}),
		qwen2(config{name: "Qwen2.5-Coder 7B", arch: "qwen2", layers: 28, width: 3584, heads: 28, kvHeads: 4, head: 128,
			ff: 18944, vocab: 152064, context: 32768}),
		qwen3(config{name: "Qwen3 8B", arch: "qwen3", layers: 36, width: 4096, heads: 32, kvHeads: 8, head: 128,
			ff: 12288, vocab: 151936, context: 40960}),
		qwen3(config{name: "Qwen3-Coder 30B-A3B", arch: "qwen3moe", layers: 48, width: 2048, heads: 32, kvHeads: 4, head: 128,
			ff: 6144, vocab: 151936, context: 262144, experts: 128, used: 8, expertFF: 768}),
		gptOSS(config{name: "gpt-oss 20B", arch: "gpt-oss", layers: 24, width: 2880, heads: 64, kvHeads: 8, head: 64,
			ff: 2880, vocab: 201088, context: 131072, experts: 32, used: 4, expertFF: 2880}),
		gptOSS(config{name: "gpt-oss 120B", arch: "gpt-oss", layers: 36, width: 2880, heads: 64, kvHeads: 8, head: 64,
			ff: 2880, vocab: 201088, context: 131072, experts: 128, used: 4, expertFF: 2880}),
		gemma(config{name: "Gemma 3 12B", arch: "gemma3", layers: 48, width: 3840, heads: 16, kvHeads: 8, head: 256,
			ff: 15360, vocab: 262144, context: 131072, tied: true}, 1024),
		gemma(config{name: "Gemma 2 9B", arch: "gemma2", layers: 42, width: 3584, heads: 16, kvHeads: 8, head: 256,
			ff: 14336, vocab: 256000, context: 8192, tied: true}, 4096),
		phi(config{name: "Phi-4 14B", arch: "phi3", layers: 40, width: 5120, heads: 40, kvHeads: 10, head: 128,
			ff: 17920, vocab: 100352, context: 16384}),
		glm4moe(config{name: "GLM-4.5-Air", arch: "glm4moe", layers: 46, nextn: 1, width: 4096, heads: 96, kvHeads: 8, head: 128,
			ff: 10944, vocab: 151552, context: 131072, experts: 128, used: 8, expertFF: 1408, sharedFF: 1408}),
	}
}

func special() []Model {
	lite := latent{config: config{name: "DeepSeek-Coder-V2-Lite", arch: "deepseek2", layers: 27, width: 2048, heads: 16, head: 128,
		ff: 10944, vocab: 102400, context: 163840, experts: 64, used: 6, expertFF: 1408, sharedFF: 2816},
		kvRank: 512, nope: 128, rope: 64, val: 128}
	old := lite
	old.old, old.name = true, "DeepSeek-Coder-V2-Lite (older file)"
	return []Model{
		deepseek(lite),
		deepseek(old),
		deepseek(latent{config: config{name: "GLM-4.7-Flash", arch: "deepseek2", layers: 47, width: 2048, heads: 20, head: 0,
			ff: 10240, vocab: 154880, context: 202752, experts: 64, used: 4, expertFF: 1536, sharedFF: 1536},
			qRank: 768, kvRank: 512, nope: 192, rope: 64, val: 256}),
		deltaNet(hybrid{config: config{name: "Qwen3-Coder-Next 80B-A3B", arch: "qwen3next", layers: 48, width: 2048, heads: 16, kvHeads: 2,
			head: 256, ff: 5120, vocab: 151936, context: 262144, experts: 512, used: 10, expertFF: 512, sharedFF: 512},
			conv: 4, state: 128, groups: 16, rank: 32, inner: 4096}),
		deltaNet(hybrid{config: config{name: "Qwen3.6 35B-A3B", arch: "qwen35moe", layers: 40, nextn: 1, width: 2048, heads: 16, kvHeads: 2,
			head: 256, ff: 512, vocab: 248320, context: 262144, experts: 256, used: 8, expertFF: 512, sharedFF: 512},
			conv: 4, state: 128, groups: 16, rank: 32, inner: 4096}),
		deltaNet(hybrid{config: config{name: "Qwen3.6 27B", arch: "qwen35", layers: 64, nextn: 1, width: 5120, heads: 24, kvHeads: 4,
			head: 256, ff: 17408, vocab: 248320, context: 262144},
			conv: 4, state: 128, groups: 16, rank: 48, inner: 6144}),
		mamba2(hybrid{config: config{name: "Granite 4.0 H Small", arch: "granitehybrid", layers: 40, width: 4096, heads: 32, kvHeads: 8,
			head: 128, ff: 768, vocab: 100352, context: 131072, experts: 72, used: 10, expertFF: 768, sharedFF: 1536, tied: true},
			conv: 4, state: 128, groups: 1, rank: 128, inner: 8192,
			attentionAt: func(i int64) bool { return i%10 == 5 }}),
	}
}
