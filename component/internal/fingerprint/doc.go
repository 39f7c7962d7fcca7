// Package fingerprint detects drift without a request: it identifies what one manager applied to
// an object and what became of it.
//
// A [Print] has two halves. Owned identifies the fields that the manager owns, from its entry in
// the object's managedFields: it needs metadata only. Values identifies the live values at these
// fields. Values that others add do not change either half. [Of] takes both, [OfMetadata] the
// first, [OfManifest] the second where an object has no managedFields.
//
// An object as it was when the last write of the manager was answered gives the baseline. If a
// later print differs, the object drifted:
//
//   - Values differ: a value that the manager applied was changed.
//   - Only Owned differs: the values are there, but another manager took the fields, or they were
//     written again. One write takes them back.
//
// A fingerprint is stored, so that what is hashed is part of the API: a change to it makes each
// object look drifted once.
package fingerprint
