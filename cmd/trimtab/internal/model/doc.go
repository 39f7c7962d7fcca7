// Package model says what is in a cluster and why it is not ready: what `kubectl trimtab` shows. It reads with the
// permissions of whoever asks, changes nothing, and notes what it was not allowed to see. The operator need not run: all is
// concluded from objects, their events, and the lease of the operator.
//
// It works for every kind that has conditions or that kstatus knows, and knows more of the kinds of trimtab's operators: the
// dependents of a component and the external resource of an object.
package model
