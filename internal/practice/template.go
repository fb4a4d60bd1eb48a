package practice

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Call is what a model with Options.Tools says to call a tool. Of pairs each is a name and a text; llama-server holds
// the model to the order of the tool's schema.
func Call(tool string, pairs ...string) string {
	var arguments []string
	for i := 0; i+1 < len(pairs); i += 2 {
		value, _ := json.Marshal(pairs[i+1])
		arguments = append(arguments, fmt.Sprintf("%q: %s", pairs[i], value))
	}
	return fmt.Sprintf("<tool_call>\n{\"name\": %q, \"arguments\": {%s}}\n</tool_call>", tool, strings.Join(arguments, ", "))
}

// jinja is the template that llama-server reads from the model. A turn's role token comes right before its text, and the
// assistant's token last, for the model chooses its answer there.
func jinja(o Options) string {
	template := jinjaPlain
	if o.Tools {
		template = jinjaTools
	}
	return strings.TrimSpace(strings.Replace(template, thinkHere, pick(o.Think, jinjaThink), 1))
}

func pick(wanted bool, text string) string {
	if wanted {
		return text
	}
	return ""
}

// thinkHere is where a template with thinking writes an assistant turn's thoughts.
const thinkHere = "THINK-HERE"

const jinjaThink = `{%- if message.role == 'assistant' and message.reasoning_content -%}{{- '<think>\n' + message.reasoning_content + '\n</think>\n\n' -}}{%- endif -%}`

const ollamaThink = `{{ if and (eq .Role "assistant") .Thinking }}<think>
{{ .Thinking }}
</think>

{{ end }}`

const jinjaPlain = `
{%- for message in messages -%}
{%- set role = message.role if message.role in ['user', 'assistant', 'tool'] else 'system' -%}
{{- '<|' + role + '|>' -}}
` + thinkHere + `
{{- message.content + '<|end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}
`

const jinjaTools = `
{%- set first = messages[0].content if messages[0].role in ['system', 'developer'] else '' -%}
{%- if tools -%}
{{- '<|system|>' + first + '\n\n# Tools\n\nYou may call one or more functions. Their signatures are within <tools></tools>:\n<tools>' -}}
{%- for tool in tools -%}
{{- '\n' + (tool | tojson) -}}
{%- endfor -%}
{{- '\n</tools>\n\nFor each call return a JSON object with the name and the arguments within <tool_call></tool_call>:\n<tool_call>\n{"name": <function-name>, "arguments": <arguments-object>}\n</tool_call><|end|>' -}}
{%- elif first -%}
{{- '<|system|>' + first + '<|end|>' -}}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'tool' -%}
{{- '<|tool|><tool_response>\n' + message.content + '\n</tool_response><|end|>' -}}
{%- elif message.role == 'assistant' -%}
{{- '<|assistant|>' -}}
` + thinkHere + `
{%- if message.content -%}{{- message.content -}}{%- endif -%}
{%- if message.tool_calls -%}
{%- for call in message.tool_calls -%}
{%- if call.function -%}{%- set call = call.function -%}{%- endif -%}
{%- if not loop.first or message.content -%}{{- '\n' -}}{%- endif -%}
{{- '<tool_call>\n{"name": "' + call.name + '", "arguments": ' -}}
{%- if call.arguments is string -%}{{- call.arguments -}}{%- else -%}{{- call.arguments | tojson -}}{%- endif -%}
{{- '}\n</tool_call>' -}}
{%- endfor -%}
{%- endif -%}
{{- '<|end|>' -}}
{%- elif message.role == 'user' -%}
{{- '<|user|>' + message.content + '<|end|>' -}}
{%- elif not loop.first -%}
{{- '<|system|>' + message.content + '<|end|>' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}
`

// Modelfile is what ollama create takes for the model at path. Ollama reads this template and not the file's own.
func Modelfile(path string, options Options) string {
	template := ollamaPlain
	if options.Tools {
		template = ollamaTools
	}
	template = strings.Replace(template, thinkHere, pick(options.Think, ollamaThink), 1)
	return "FROM " + path + "\nTEMPLATE \"\"\"" + strings.TrimSpace(template) + "\"\"\"\n"
}

const ollamaPlain = `
{{- range .Messages }}<|{{ .Role }}|>` + thinkHere + `{{ .Content }}<|end|>{{ end }}<|assistant|>
`

// Ollama takes the first text within «if .ToolCalls» for what begins a call, so nothing may come between.
const ollamaTools = `
{{- if .Tools }}<|system|>{{ .System }}

# Tools

You may call one or more functions. Their signatures are within <tools></tools>:
<tools>
{{- range .Tools }}
{"type": "function", "function": {{ .Function }}}
{{- end }}
</tools>

For each call return a JSON object with the name and the arguments within <tool_call></tool_call>:
<tool_call>
{"name": <function-name>, "arguments": <arguments-object>}
</tool_call><|end|>
{{- else if .System }}<|system|>{{ .System }}<|end|>
{{- end }}
{{- range .Messages }}
{{- if eq .Role "user" }}<|user|>{{ .Content }}<|end|>
{{- else if eq .Role "tool" }}<|tool|><tool_response>
{{ .Content }}
</tool_response><|end|>
{{- else if eq .Role "assistant" }}<|assistant|>` + thinkHere + `{{ .Content }}
{{- if .ToolCalls }}
{{- range .ToolCalls }}<tool_call>
{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}
</tool_call>
{{- end }}
{{- end }}<|end|>
{{- end }}
{{- end }}<|assistant|>
`
