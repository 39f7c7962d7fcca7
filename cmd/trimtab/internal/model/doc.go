// Package model says what is in a cluster and why it is not ready: what `kubectl trimtab` shows. It reads with the
// permissions of whoever asks, changes nothing, and notes what it was not allowed to see. The operator need not run: all is
// concluded from objects, their events, and the lease of the operator.
//
// What commands do to an object is a [Change] or a [Stuck]: it says beforehand what follows, and becomes a patch that the API server
// accepts only if the object is still as it was when it was looked at.
//
// It works for every kind that has conditions or that kstatus knows, and knows more of the kinds of trimtab's operators: the
// dependents of a component and the external resource of an object.
package model
