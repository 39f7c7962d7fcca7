// Package trigger contains the sources that wake a loop when something other than the object itself
// changes.
//
// A [Source] says what it watches, from which its permissions follow, and whom it wakes. [Reference]
// wakes an object when another object that it names changes, and can keep that object from being deleted while it is
// named. [Owned] wakes an object when another object that it owns changes. [Kind] watches objects of any other kind, in
// this cluster or in another one. [Poll], [Inbound], [Channel] and [External] wake objects for events that do not come
// from Kubernetes, and [Cron] at the times of a schedule.
//
// A pass that knows when the next one is due says so by its outcome, see loop.After; that needs no source. Start with
// the example of the package.
package trigger
