// Package trigger contains the sources that wake a loop when something other than the object itself
// changes.
//
// A [Source] says what it watches, from which its permissions follow, and whom it wakes. [Reference]
// wakes an object when another object that it names changes, and can keep that object from being deleted while it is
// named. [Owned] wakes an object when another object that it owns changes. [External] wakes objects for events that do
// not come from Kubernetes; its [Waker] says which ones.
//
// There are no timers: a pass requests the next one by its outcome, see loop.After. Start with the
// examples of Reference and of loop.New.
package trigger
