// Package projection knows the live objects of components: of each a few hundred bytes that say whose
// it is, what was applied to it, whether it drifted and whether it is healthy. It watches; it reads
// nothing, and it keeps no values.
package projection
