package health

// Expressions judge objects in a language that a [Compiler] knows. They are evaluated in the order of the
// fields; the first that is true decides. An empty one is not evaluated.
type Expressions struct {
	// InProgress is true of an object that is not ready, and Failed of one that will not become ready by
	// itself.
	InProgress string `json:"inProgress,omitempty"`
	Failed     string `json:"failed,omitempty"`
	// Current is true of an object that is ready. An object of which nothing is true is in progress.
	// Empty means that an object is ready if nothing else is true.
	Current string `json:"current,omitempty"`
}

// Compiler makes rules of expressions. Package health/cel has one.
type Compiler interface {
	// Compile returns the rule. The error says which expression is wrong, and where.
	Compile(e Expressions) (Rule, error)
}
