package desired

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/trimtab-dev/trimtab/api"
)

// once is the digest of an object that is never written again.
const once = "once"

// OwnerKey is the name of the label and of the annotation that say whose an object is.
func OwnerKey(name string) string { return name + "/owner-id" }

// DigestKey is the name of the annotation with the digest of the manifest that was applied last.
func DigestKey(name string) string { return name + "/digest" }

// HintsKey is the name of the annotation that says what the status of an object will have.
func HintsKey(name string) string { return name + "/" + statusHint }

// HealthKey is the name of the annotation with the rule by which the object is judged.
func HealthKey(name string) string { return name + "/" + healthRule }

// OwnerLabel returns the value of the label: a hash of the owner, for selectors.
func OwnerLabel(ownerID string) string {
	sum := sha256.Sum256([]byte(ownerID))
	return letters(sum[:])
}

// OwnerAnnotation returns the value of the annotation: the owner and its UID, and the key of the object
// itself. A component that was deleted and created again, or restored from a backup, has another UID. An
// object that got label and annotation by being copied from another has the other's key.
func OwnerAnnotation(ownerID, uid, key string) string { return ownerID + "@" + uid + " " + key }

// ParseOwner splits the value of the annotation. The UID is empty if there is none.
func ParseOwner(annotation string) (ownerID, uid, key string, ok bool) {
	owner, key, ok := strings.Cut(annotation, " ")
	ownerID, uid, _ = strings.Cut(owner, "@")
	return ownerID, uid, key, ok
}

// OtherOwner returns the owner of an object if it belongs to a component of an operator of another name, and that
// name. The key is the object's own.
func OtherOwner(annotations map[string]string, name, key string) (ownerID, operator string) {
	for _, annotation := range slices.Sorted(maps.Keys(annotations)) {
		other, is := strings.CutSuffix(annotation, OwnerKey(""))
		if id, _, of, ok := ParseOwner(annotations[annotation]); is && other != name && ok && of == key {
			return id, other
		}
	}
	return "", ""
}

// digest identifies a manifest that does not carry the owner's label and annotations yet. It has 128
// bits, so that nobody finds two manifests with the same one.
func digest(manifest map[string]any, policy api.ReconcilePolicy, generation int64) string {
	if policy == api.ReconcilePolicyOnce {
		return once
	}
	content, err := json.Marshal(manifest) // sorts keys
	if err != nil {
		panic("a manifest that was read from JSON is not JSON: " + err.Error())
	}
	sum := sha256.Sum256(content)
	text := letters(sum[:16])
	if policy == api.ReconcilePolicyOnObjectOrComponentChange {
		text += "@" + strconv.FormatInt(generation, 10)
	}
	return text
}

func letters(b []byte) string {
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}
