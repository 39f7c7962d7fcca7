package helm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/internal/rendering"
	"github.com/trimtab-dev/trimtab/internal/golden"
)

// Functions of templates that return something else each time. A component is rendered more than once for a revision:
// after a restart, when something that was looked up changes, and when a manifest is needed again. So what they
// returned is stored in a Secret beside the dependents, in the first wave, and returned again for the same revision.
//
//	draw -> Secret -> dependents with what was drawn
//
// A process that ends before the Secret exists has applied nothing that depends on it. The next one draws again.

// fickle are the names of these functions.
func fickle() []string {
	return []string{
		"ago", "bcrypt", "date", "dateInZone", "date_in_zone", "durationRound", "encryptAES", "genCA", "genCAWithKey",
		"genPrivateKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "htmlDate",
		"htmlDateInZone", "htpasswd", "now", "randAlpha", "randAlphaNum", "randAscii", "randBytes", "randInt", "randNumeric",
		"shuffle", "uuidv4",
	}
}

const (
	drawsKey    = "results" // of the data of the Secret
	revisionKey = "revision"
	drawsWave   = -1 << 15
)

// draws are what such functions returned in a rendering.
type draws struct {
	// name and namespace are those of the Secret; revision is its number with its digest.
	namespace, name, revision string
	// digest identifies what the component is rendered from.
	digest string
	// fixed: the results are those for golden files.
	fixed bool
	// find returns the results of earlier renderings of the revision. It is called with the first draw. Nil means that
	// there are none.
	find func() (map[string]json.RawMessage, error)
	// remember is called with new results. Nil means that nobody wants to know.
	remember func(map[string]json.RawMessage)

	results map[string]json.RawMessage // nil before the first draw
	calls   map[string]int             // how often each call was made
	file    string                     // what is rendered, if it draws
}

// functions returns the functions, which remember what they return.
func (d *draws) functions(sites []site) template.FuncMap {
	all := sprig.TxtFuncMap()
	if d.fixed {
		maps.Copy(all, fixed(all))
	}
	out := template.FuncMap{
		"keys": rendering.SortedKeys, "values": rendering.SortedValues,
		enter: func(file string) string { d.file = file; return "" },
	}
	for _, name := range fickle() { // in texts that tpl renders
		out[name] = d.remembering(name, reflect.ValueOf(all[name]))
	}
	for _, s := range sites {
		out[s.alias] = d.remembering(s.alias, reflect.ValueOf(all[s.function]))
	}
	return out
}

// remembering returns a function like f that returns for the nth call with some arguments what it returned before for it.
func (d *draws) remembering(name string, f reflect.Value) any {
	kind := f.Type()
	return reflect.MakeFunc(kind, func(args []reflect.Value) []reflect.Value {
		result := reflect.New(kind.Out(0))
		err := d.draw(name, args, result, func() (reflect.Value, error) {
			call := f.Call
			if kind.IsVariadic() {
				call = f.CallSlice
			}
			answers := call(args)
			if len(answers) > 1 {
				if err, ok := reflect.TypeAssert[error](answers[1]); ok && err != nil {
					return reflect.Value{}, err
				}
			}
			return answers[0], nil
		})
		if kind.NumOut() == 1 {
			if err != nil {
				panic(err) // the engine makes an error of it
			}
			return []reflect.Value{result.Elem()}
		}
		failure := reflect.Zero(kind.Out(1))
		if err != nil {
			failure = reflect.ValueOf(err)
		}
		return []reflect.Value{result.Elem(), failure}
	}).Interface()
}

// draw sets into to what a call returned before, or to what it returns now.
func (d *draws) draw(name string, args []reflect.Value, into reflect.Value, call func() (reflect.Value, error)) error {
	if d.results == nil {
		d.results, d.calls = map[string]json.RawMessage{}, map[string]int{}
		if d.find != nil {
			found, err := d.find()
			if err != nil {
				d.results = nil
				return err
			}
			maps.Copy(d.results, found)
		}
	}
	plain := make([]any, len(args))
	for i, arg := range args {
		if !d.fixed { // names of namespaces are in some
			plain[i] = arg.Interface()
		}
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return fmt.Errorf("encode the arguments: %w", err)
	}
	sum := sha256.Sum256(append(text, d.file...))
	key := name + "-" + hex.EncodeToString(sum[:8])
	d.calls[key]++
	key = fmt.Sprintf("%s-%d", key, d.calls[key])
	if d.results[key] == nil {
		result, err := call()
		if err != nil {
			return err
		}
		if d.results[key], err = json.Marshal(result.Interface()); err != nil {
			return fmt.Errorf("encode the result: %w", err)
		}
		if d.remember != nil {
			d.remember(d.results)
		}
	}
	return json.Unmarshal(d.results[key], into.Interface())
}

// keep adds the Secret with the results to a set, if there are some.
func (d *draws) keep(set *component.Set) *component.Dependent {
	if len(d.results) == 0 {
		return nil
	}
	text, _ := json.Marshal(d.results) // it was encoded before
	return set.Add(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "trimtab.dev/random",
		"metadata":   map[string]any{"namespace": d.namespace, "name": d.name},
		"stringData": map[string]any{drawsKey: string(text), revisionKey: d.revision},
	}}).Wave(drawsWave).Policies(api.Policies{AdoptionPolicy: api.AdoptionPolicyNever})
}

// pending remembers results of revisions whose Secret may not exist yet, or may be deleted by somebody.
type pending struct{ revisions *lru.Cache }

// mostPending is how many components are remembered: many more than are rendered for the first time at once.
const mostPending = 10000

// draws returns what remembers the results for the component of a context.
func (p *pending) draws(ctx context.Context, r Release) (*draws, error) {
	digest, err := component.ComponentDigestFromContext(ctx)
	if err != nil {
		return nil, err
	}
	owner, err := component.ComponentFromContext(ctx)
	if err != nil {
		return nil, err
	}
	revision := fmt.Sprintf("%d.%s", r.Revision, digest)
	key := [2]string{string(owner.GetUID()), revision}
	d := &draws{namespace: r.Namespace, name: r.Name + "-random", revision: revision, digest: digest, fixed: golden.Is(ctx)}
	d.find = func() (map[string]json.RawMessage, error) {
		s := &corev1.Secret{}
		err := component.Lookup(ctx, client.ObjectKey{Namespace: d.namespace, Name: d.name}, s)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		found := map[string]json.RawMessage{}
		if string(s.Data[revisionKey]) == revision {
			if err := json.Unmarshal(s.Data[drawsKey], &found); err != nil {
				return nil, fmt.Errorf("the Secret %s/%s, which has the results of functions such as randAlphaNum, cannot be read: %w; "+
					"delete it to have them called again", d.namespace, d.name, err)
			}
		}
		if known, ok := p.revisions.Get(key); ok {
			if known, ok := known.(map[string]json.RawMessage); ok && len(known) > len(found) {
				return known, nil
			}
		}
		return found, nil
	}
	d.remember = func(results map[string]json.RawMessage) { p.revisions.Add(key, maps.Clone(results)) }
	return d, nil
}
