package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// Reference is a field of a spec that names a Secret or a ConfigMap in the namespace of the object: a
// *[SecretReference], *[SecretKeyReference], *[ConfigMapReference] or *[ConfigMapKeyReference]. Package component
// finds references wherever they are in a spec, watches what they name, and loads it before the component is
// rendered. Package external loads those that its Config or Authenticator returns, before it connects. The loaded
// content is never marshaled to JSON.
type Reference interface {
	// Refers returns what the reference names: "Secret" or "ConfigMap", and the object's name. An
	// empty name refers to nothing.
	Refers() (kind, name string)
	// Load stores the content of the object in the reference. The digest identifies the part of the
	// content that the reference uses. It is an error if that part is missing.
	Load(content map[string][]byte) (digest string, err error)

	reference()
}

// SecretReference refers to all keys of a Secret.
//
// +k8s:deepcopy-gen=true
type SecretReference struct {
	// Name is the name of a Secret in the namespace of the object.
	Name string `json:"name"`

	data map[string][]byte `json:"-"`
}

// Data returns the Secret's data. It is nil until the reference has been loaded.
func (r *SecretReference) Data() map[string][]byte { return r.data }

// Refers implements [Reference].
func (r *SecretReference) Refers() (kind, name string) { return kindSecret, r.Name }

// Load implements [Reference].
func (r *SecretReference) Load(content map[string][]byte) (string, error) {
	r.data = content
	return digestOf(content), nil
}

func (*SecretReference) reference() {}

// SecretKeyReference refers to one key of a Secret.
//
// +k8s:deepcopy-gen=true
type SecretKeyReference struct {
	// Name is the name of a Secret in the namespace of the object.
	Name string `json:"name"`

	// Key is a key of the Secret. It defaults to the first of value, value.yaml and value.yml that
	// exists.
	// +optional
	Key string `json:"key,omitempty"`

	value []byte `json:"-"`
}

// Value returns the value of the key. It is nil if the reference names no Secret. Until the reference has
// been loaded, it is empty but not nil.
func (r *SecretKeyReference) Value() []byte {
	if r.value == nil && r.Name != "" {
		return []byte{} // for GetKubeConfig, nil is another cluster
	}
	return r.value
}

// Refers implements [Reference].
func (r *SecretKeyReference) Refers() (kind, name string) { return kindSecret, r.Name }

// Load implements [Reference].
func (r *SecretKeyReference) Load(content map[string][]byte) (digest string, err error) {
	r.value, digest, err = valueOf(content, r.Key)
	return digest, err
}

func (*SecretKeyReference) reference() {}

// ConfigMapReference refers to all keys of a ConfigMap.
//
// +k8s:deepcopy-gen=true
type ConfigMapReference struct {
	// Name is the name of a ConfigMap in the namespace of the object.
	Name string `json:"name"`

	data map[string]string `json:"-"`
}

// Data returns the ConfigMap's data. It is nil until the reference has been loaded.
func (r *ConfigMapReference) Data() map[string]string { return r.data }

// Refers implements [Reference].
func (r *ConfigMapReference) Refers() (kind, name string) { return kindConfigMap, r.Name }

// Load implements [Reference].
func (r *ConfigMapReference) Load(content map[string][]byte) (string, error) {
	r.data = make(map[string]string, len(content))
	for key, value := range content {
		r.data[key] = string(value)
	}
	return digestOf(content), nil
}

func (*ConfigMapReference) reference() {}

// ConfigMapKeyReference refers to one key of a ConfigMap.
//
// +k8s:deepcopy-gen=true
type ConfigMapKeyReference struct {
	// Name is the name of a ConfigMap in the namespace of the object.
	Name string `json:"name"`

	// Key is a key of the ConfigMap. It defaults to the first of value, value.yaml and value.yml
	// that exists.
	// +optional
	Key string `json:"key,omitempty"`

	value string `json:"-"`
}

// Value returns the value of the key. It is empty until the reference has been loaded.
func (r *ConfigMapKeyReference) Value() string { return r.value }

// Refers implements [Reference].
func (r *ConfigMapKeyReference) Refers() (kind, name string) { return kindConfigMap, r.Name }

// Load implements [Reference].
func (r *ConfigMapKeyReference) Load(content map[string][]byte) (string, error) {
	value, digest, err := valueOf(content, r.Key)
	r.value = string(value)
	return digest, err
}

func (*ConfigMapKeyReference) reference() {}

const (
	kindSecret    = "Secret"
	kindConfigMap = "ConfigMap"
)

// valueOf returns the value of a key.
func valueOf(content map[string][]byte, key string) (value []byte, digest string, err error) {
	keys := []string{key}
	if key == "" {
		keys = []string{"value", "value.yaml", "value.yml"}
	}
	for _, k := range keys {
		if value, ok := content[k]; ok {
			return value, digestOf(map[string][]byte{k: value}), nil
		}
	}
	return nil, "", fmt.Errorf("has no key %q", strings.Join(keys, `" or "`))
}

// digestOf identifies content.
func digestOf(content map[string][]byte) string {
	text, err := json.Marshal(content) // sorts keys
	if err != nil {
		panic("bytes are not JSON: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
