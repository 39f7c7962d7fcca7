// Package trigger holds what wakes a loop besides the object itself: changes of other
// objects that an object refers to by name ([Reference]), and what happens outside the cluster
// ([Outside]). Timers are outcomes (loop.After); drift polls belong to package
// external.
package trigger
