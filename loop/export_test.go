package loop

// Ungated has [Run.Client] be the manager's, to compare the two.
func (c *Controller[T]) Ungated() *Controller[T] {
	c.ungated = true
	return c
}
