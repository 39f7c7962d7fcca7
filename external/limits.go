package external

// Limits restricts what annotations on objects may ask for, and sets defaults for objects without
// annotations. The zero value is safe.
type Limits struct {
	// Adoption is the most that annotation trimtab.dev/adoption may ask for: "never", "if-marked",
	// "if-identical" or "always". Empty means "if-marked": a resource is only adopted if its mark
	// proves that it belongs to the object. Whoever runs the operator can override this with
	// --adoption-limit.
	Adoption string
	// Access is the most that annotation trimtab.dev/access-permissions may allow: letters of "CUD"
	// (create, update, delete), "none" or "read-only". Empty means everything. Whoever runs the
	// operator can restrict it further with --access-limit.
	Access string
	// Deletion is what happens to the resource of an object without annotation trimtab.dev/deletion:
	// "delete", or "orphan" for data that must not be lost. Empty means "delete".
	Deletion string
}
