// Package fingerprint detects drift without a request: it identifies what one manager applied to
// an object and what became of it.
//
// A [Print] has two halves. Owned identifies the fields that the manager owns, from its entry in
// the object's managedFields: it needs metadata only. Values identifies the live values at these
// fields. Values that others add do not change either half. [Of] takes both, [OfMetadata] the
// first, [OfManifest] the second where an object has no managedFields.
//
// The object that the API server answered to the manager's last write gives the baseline. A later
// print that is equal says that nothing has to be written. One that differs, or that no longer exists
// because the manager has no entry, asks for one write: either an applied value was changed, which
// [Diff] shows and [Managers] attributes, or the values are there and another manager took them.
//
// A fingerprint is stored, so that what is hashed is part of the API: a change to it makes each
// object look drifted once.
package fingerprint
