package survey

import (
	"localllm/capability"
	"localllm/internal/gguf"
)

// Shape is what a header says about a model's memory.
func Shape(h *gguf.Header) (capability.Shape, error) {
	tensors := make([]capability.Tensor, len(h.Tensors))
	for i, t := range h.Tensors {
		tensors[i] = capability.Tensor{Name: t.Name, Bytes: t.Bytes}
	}
	return capability.ShapeOf(h, tensors)
}
