package external

// Limits bound what the annotations on objects may ask for, and say what holds where they ask
// for nothing. The zero value is safe.
type Limits struct {
	// Adoption is the most that annotation trimtab.dev/adoption may ask for: "never",
	// "if-marked", "if-identical" or "always". Empty means "if-marked": nobody takes over what
	// nothing proves to be his. Operators have --adoption-limit to decide otherwise.
	Adoption string
	// Access is the most that annotation trimtab.dev/access-permissions may allow, in its
	// letters. Empty means all. The operator's --access-limit can allow less, not more.
	Access string
	// Deletion is what becomes of the thing of an object without annotation
	// trimtab.dev/deletion: "delete" or "orphan", which suits data that must not be lost.
	// Empty means "delete".
	Deletion string
}
