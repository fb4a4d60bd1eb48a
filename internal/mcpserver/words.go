package mcpserver

import (
	"strings"

	"localllm/internal/request"
)

// Instructions reach the model at the start of every session, in all clients.
const Instructions = `local_llm hands bounded coding work to a model on this machine's own GPU and proves the result, so that it costs none of your context.
Use it when a local model is enabled ("status" says so) or the user asks for it (llm=true). Then, for each step: "analyze"; over 0.6 "delegate", under 0.4 do it yourself.
Good: one file from a pattern, tests, boilerplate, CRUD, docs, small fixes, summaries of long files. Bad: architecture, security, work across many files, anything that you can't describe fully in the task.
Always give context_files and output_files, and a verify command that fails now and passes when the work is right. Files are written only as declared; unless proven by verify they are put back. Don't paste file bodies into the task, and don't re-read proven files.
ok:false is an answer: do that step yourself. Long calls: background:true, then "status" with the task_id. Never "enable" unasked.`

// Description says what each action is for and which fields it takes.
func Description() string {
	var b strings.Builder
	b.WriteString("A local model on this machine. Give \"action\" and that action's fields, no others:\n")
	for _, name := range request.Actions() {
		a := request.Describe(name)
		b.WriteString(name + ": " + a.Summary)
		switch name {
		case "delegate":
			b.WriteString(" (the schema's fields from task to tasks; one of the two)\n")
		case "analyze":
			b.WriteString(" (task, files, task_type, context_files, output_files, verify)\n")
		default:
			b.WriteString(" (" + a.Takes() + ")\n")
		}
	}
	b.WriteString("delegate's status: proven (verify was red, is green), unproven (was green before), unverified, answered; else the files are put back: failed, rejected, refused, timed_out, cancelled.")
	return b.String()
}

// outputSchema holds for the results of all actions: the fields that a caller branches on.
const outputSchema = `{"type":"object","properties":{` +
	`"ok":{"type":"boolean","description":"delegate: accomplished"},` +
	`"status":{"type":"string","description":"delegate: proven, unproven, unverified, answered, failed, rejected, refused, timed_out, cancelled; a background task: queued, running"},` +
	`"files":{"type":"array","items":{"type":"object"},"description":"delegate: what became of each output"},` +
	`"text":{"type":"string","description":"delegate without output files: the answer"},` +
	`"task_id":{"type":"string","description":"a background task, for status"},` +
	`"results":{"type":"array","items":{"type":"object"},"description":"a batch: one result a task, in order"},` +
	`"score":{"type":"number"},` +
	`"recommendation":{"type":"string","enum":["delegate","consider","keep"],"description":"analyze"},` +
	`"can_enable":{"type":"boolean","description":"capability"},` +
	`"enabled":{"type":"boolean","description":"enable, status"},` +
	`"state":{"type":"string","description":"status: off, starting, loading, ready, busy, stopping, failed"},` +
	`"disabled":{"type":"boolean","description":"disable"},` +
	`"delegations":{"type":"integer","description":"stats"}}}`
