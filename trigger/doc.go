// Package trigger holds the sources that wake a loop: what can change besides the object itself.
//
// A [Source] says what it watches, which decides the permissions that it needs, and whom it wakes.
// [Reference] wakes an object when another object that it names changes, [External] when something
// happens that Kubernetes does not show; its [Waker] says for which objects.
//
// Timers are not here: a pass asks for the next one by its outcome, see loop.After. Start with the
// examples of Reference and of loop.New.
package trigger
