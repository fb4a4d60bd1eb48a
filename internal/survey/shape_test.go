package survey

import (
	"bytes"
	"encoding/binary"
	"testing"

	"localllm/capability"
	"localllm/internal/gguf"
)

// small is a header of one architecture with a few numbers and no tensors.
func small(arch string, numbers map[string]uint64) []byte {
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			if s, ok := v.(string); ok {
				v = []byte(s)
				_ = binary.Write(&b, binary.LittleEndian, uint64(len(s)))
			}
			_ = binary.Write(&b, binary.LittleEndian, v)
		}
	}
	put([]byte("GGUF"), uint32(3), uint64(0), uint64(len(numbers)+1), "general.architecture", uint32(8), arch)
	for key, n := range numbers {
		put(arch+"."+key, uint32(10), n)
	}
	return b.Bytes()
}

// Whatever a file claims, its estimate is a size and never overflows: a negative need would fit everywhere.
func FuzzShape(f *testing.F) {
	usual := map[string]uint64{"block_count": 4, "embedding_length": 64, "attention.head_count": 4, "attention.head_count_kv": 2, "context_length": 4096}
	with := func(more map[string]uint64) map[string]uint64 {
		for k, v := range usual {
			more[k] = v
		}
		return more
	}
	f.Add(small("llama", usual))
	f.Add(small("gemma3", with(map[string]uint64{"attention.sliding_window": 512, "attention.sliding_window_pattern": 6})))
	f.Add(small("deepseek2", with(map[string]uint64{"attention.key_length": 576, "attention.key_length_mla": 192})))
	f.Add(small("qwen35", with(map[string]uint64{"ssm.inner_size": 64, "ssm.state_size": 16, "ssm.group_count": 1, "ssm.conv_kernel": 4, "full_attention_interval": 4})))
	f.Add(small("lfm2", with(map[string]uint64{"shortconv.l_cache": 3})))
	f.Add(small("glm4moe", with(map[string]uint64{"nextn_predict_layers": 1, "expert_used_count": 8, "expert_feed_forward_length": 1 << 62})))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := gguf.Read(bytes.NewReader(data), 1<<50)
		if err != nil {
			return
		}
		capability.UnfitFor(h)
		s, err := Shape(h)
		if err != nil {
			return
		}
		n := s.Estimate(capability.Setting{Context: 1 << 24, KVType: "f32", Slots: 256, Devices: 64})
		for _, part := range []int64{n.WeightsBytes, n.KVBytes, n.StateBytes, n.ComputeBytes, n.RuntimeBytes, n.Total()} {
			if part < 0 {
				t.Errorf("a negative part in %+v of %+v", n, s)
			}
		}
	})
}
