package stage

// Request is a type: a workflow may use it.
type Request struct{}

// Run is a function: a workflow may not call it.
func Run(Request) {}
