// Package gguf reads the headers of GGUF model files and writes small ones. It never loads tensor data, and what it
// keeps of a foreign file is bounded.
package gguf
