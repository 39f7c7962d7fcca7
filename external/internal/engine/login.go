package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

// Connector makes the clients of objects that do not all use the same one.
type Connector struct {
	// Scope returns the scope of an object. It is not called if there is a Config.
	Scope func(Object) (string, error)
	// Config is the kind of the objects that say how to connect; nil if each object does itself.
	Config *Config
	// Credentials are the references, in what says how to connect, that Connect needs; nil if there are none.
	Credentials func(from client.Object) []api.Reference
	// SecretNamespace is where the references of cluster-scoped objects lead.
	SecretNamespace string
	Connect         func(ctx context.Context, scope string, from client.Object) (client any, endpoint string, err error)
}

// Config is a kind of objects that others name, and that say how to connect.
type Config struct {
	// To is an empty object of the kind.
	To client.Object
	// Of returns which one an object names. An empty namespace is that of the object if the kind is namespaced.
	Of func(Object) (objectKey, error)
}

// login is what the client of an object is made from.
type login struct {
	scope string
	// from says how to connect: a copy of the object, or of its config, for the driver.
	from client.Object
	refs []api.Reference
	// namespace is where the references lead.
	namespace string
	// version changes with all of this. It is empty if the client depends on nothing.
	version string
	// present: what it is made from is not known, and only the client that there is may be used.
	present bool
	// unkept is the config, if it may be deleted at any moment.
	unkept *loop.Dep
}

// incomplete is why there is no client: what it is made from is missing. Its text says what to do.
type incomplete struct{ text string }

func (e *incomplete) Error() string { return e.text }

// loginOf finds out what the client of an object is made from. It reads only the cache, which has no values of Secrets.
// There is a connector. If only a part of that is known, it returns this part and an error; the scope is known then.
func (e *Engine) loginOf(ctx context.Context, r Run, who subject, obj Object) (*login, error) {
	by := e.options.Connector
	if by.Config != nil {
		return e.configured(ctx, r, who, obj)
	}
	l, err := pure(&e.abandoned, who, "Scope", func() (*login, error) {
		scope, err := by.Scope(obj)
		if err != nil || by.Credentials == nil {
			return &login{scope: scope, from: obj}, err
		}
		l := &login{from: copyOf(obj)} // what is loaded is for Connect alone
		l.refs = filled(by.Credentials(l.from))
		names, err := json.Marshal(l.refs) // never has values
		l.scope = scope + "\n" + obj.GetNamespace() + " " + string(names)
		return l, err
	})
	if err != nil {
		return nil, err
	}
	return l, e.complete(ctx, r, l)
}

// configured is loginOf if objects name a config.
func (e *Engine) configured(ctx context.Context, r Run, who subject, obj Object) (*login, error) {
	config := e.options.Connector.Config
	key, err := pure(&e.abandoned, who, "Config.Of", func() (objectKey, error) { return config.Of(obj) })
	if err != nil {
		return nil, err
	}
	kind := kindOf(r.Client(), config.To)
	if key.Name == "" {
		return nil, &incomplete{fmt.Sprintf("it names no %s; name one in its spec", kind)}
	}
	if key, err = e.locate(r.Client(), key, obj); err != nil {
		return nil, err
	}
	l := &login{scope: key.String()}
	if !r.Terms().Watches(key.Namespace) {
		return l, &incomplete{unwatched(kind, key)}
	}
	from, _ := config.To.DeepCopyObject().(client.Object)
	switch err := r.Client().Get(ctx, key, from); {
	case apierrors.IsNotFound(err):
		return l, &incomplete{fmt.Sprintf("%s %s does not exist; create it", kind, titleOf(key))}
	case err != nil:
		return l, fmt.Errorf("read %s %s: %w", kind, titleOf(key), err)
	}
	l.from, l.version = from, fmt.Sprintf("%s@%d", from.GetUID(), from.GetGeneration())
	keeps, err := e.keeps(r.Client(), obj)
	if err != nil {
		return l, err
	}
	leaves := !from.GetDeletionTimestamp().IsZero() && obj.TrimtabExternal().External == nil // nothing new is created then
	if keeps != "" && (leaves || !slices.Contains(from.GetFinalizers(), keeps)) {
		l.unkept = &loop.Dep{Kind: kind, Namespace: key.Namespace, Name: key.Name, Why: "is not protected from deletion yet"}
		if leaves {
			l.unkept.Why = "is being deleted"
		}
	}
	if credentials := e.options.Connector.Credentials; credentials != nil {
		l.refs, err = pure(&e.abandoned, who, "Config.Credentials", func() ([]api.Reference, error) { return filled(credentials(from)), nil })
		if err != nil {
			return l, err
		}
	}
	return l, e.complete(ctx, r, l)
}

// keeps returns the finalizer with which configs stay while objects name them; empty if nothing keeps them.
func (e *Engine) keeps(c client.Client, obj Object) (string, error) {
	if e.unlocked { // for nodes of components, there are no objects that name them
		return "", nil
	}
	kind, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return "", fmt.Errorf("tell the kind of a %T: %w", obj, err)
	}
	return trigger.FinalizerOf(kind), nil
}

// locate completes the name of a config.
func (e *Engine) locate(c client.Client, key objectKey, obj client.Object) (objectKey, error) {
	namespaced, err := c.IsObjectNamespaced(e.options.Connector.Config.To)
	switch {
	case err != nil:
		return key, fmt.Errorf("tell whether %T is namespaced: %w", e.options.Connector.Config.To, err)
	case !namespaced:
		key.Namespace = ""
	case key.Namespace == "":
		key.Namespace = obj.GetNamespace()
	}
	return key, nil
}

// complete finds out the versions of what the references lead to.
func (e *Engine) complete(ctx context.Context, r Run, l *login) error {
	if l.namespace = l.from.GetNamespace(); l.namespace == "" {
		l.namespace = e.options.Connector.SecretNamespace
	}
	for _, ref := range l.refs {
		kind, name := ref.Refers()
		key := objectKey{Namespace: l.namespace, Name: name}
		switch {
		case key.Namespace == "":
			return fmt.Errorf("%s %q is in no namespace, because %T has none; set Config.SecretNamespace", kind, name, l.from)
		case !r.Terms().Watches(key.Namespace):
			return &incomplete{unwatched(kind, key)}
		}
		found := metadataOf(kind)
		switch err := r.Client().Get(ctx, key, found); {
		case apierrors.IsNotFound(err):
			return &incomplete{fmt.Sprintf("%s %s does not exist; create it", kind, key)}
		case err != nil:
			return fmt.Errorf("find %s %s: %w", kind, key, err)
		}
		l.version += fmt.Sprintf(" %s/%s@%s", kind, key, found.ResourceVersion)
	}
	return nil
}

// load reads what the references lead to from the API server, and hands it over. It returns the digest of what the
// client is made from, and what must not appear in any message.
func (l *login) load(ctx context.Context, live client.Reader) (digest string, secrets []string, err error) {
	read := map[string]map[string][]byte{}
	digest = l.version
	if i := strings.IndexByte(digest, ' '); i >= 0 { // the versions of Secrets change without their values
		digest = digest[:i]
	}
	for _, ref := range l.refs {
		kind, name := ref.Refers()
		key := objectKey{Namespace: l.namespace, Name: name}
		content, known := read[kind+name]
		if !known {
			if content, err = contentOf(ctx, live, kind, key); apierrors.IsNotFound(err) {
				return "", nil, &incomplete{fmt.Sprintf("%s %s does not exist; create it", kind, key)}
			} else if err != nil {
				return "", nil, fmt.Errorf("read %s %s: %w", kind, key, err)
			}
			read[kind+name] = content
		}
		part, err := ref.Load(content)
		if err != nil {
			return "", nil, &incomplete{fmt.Sprintf("%s %s %v; add it", kind, key, err)}
		}
		digest += " " + part
		secrets = append(secrets, secretsIn(ref)...)
	}
	return digest, secrets, nil
}

func contentOf(ctx context.Context, live client.Reader, kind string, key objectKey) (map[string][]byte, error) {
	if kind == "Secret" {
		s := &corev1.Secret{}
		err := live.Get(ctx, key, s)
		return s.Data, err
	}
	m := &corev1.ConfigMap{}
	err := live.Get(ctx, key, m)
	content := map[string][]byte{}
	for k, v := range m.Data {
		content[k] = []byte(v)
	}
	maps.Copy(content, m.BinaryData)
	return content, err
}

// shortestSecret is the length from which on a value is removed from messages: shorter ones occur in words.
const shortestSecret = 6

// secretsIn returns the values of a reference that must not appear in messages.
func secretsIn(ref api.Reference) []string {
	var values [][]byte
	switch ref := ref.(type) {
	case *api.SecretKeyReference:
		values = [][]byte{ref.Value()}
	case *api.SecretReference:
		for key, value := range ref.Data() {
			if plain.NamesSecret(key) {
				values = append(values, value)
			}
		}
	}
	var out []string
	for _, v := range values {
		if v = bytes.TrimSpace(v); len(v) >= shortestSecret {
			out = append(out, string(v))
		}
	}
	return out
}

// hide removes secrets from a text.
func hide(text string, secrets []string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, plain.Hidden)
	}
	return text
}

// filled leaves out references that name nothing.
func filled(refs []api.Reference) []api.Reference {
	var out []api.Reference
	for _, ref := range refs {
		if v := reflect.ValueOf(ref); !v.IsValid() || v.IsNil() {
			continue
		}
		if _, name := ref.Refers(); name != "" {
			out = append(out, ref)
		}
	}
	return out
}

// metadataOf is an empty object of a kind that references name, without its content: values of Secrets are never cached.
func metadataOf(kind string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return m
}

func unwatched(kind string, key objectKey) string {
	return fmt.Sprintf("%s %s is in a namespace that this operator does not watch; add %s to --watch-namespaces", kind, key, key.Namespace)
}

// titleOf is a name for messages.
func titleOf(key objectKey) string { return strings.TrimPrefix(key.String(), "/") }

// isIncomplete reports whether a client is missing because of what is in the cluster, not because of the API.
func isIncomplete(err error) bool {
	_, is := errors.AsType[*incomplete](err)
	return is
}
