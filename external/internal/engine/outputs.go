package engine

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/change"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/trace"
)

// Connection is where the connection details of a resource go.
type Connection struct {
	To              api.Reference
	Namespace       string
	Passwords, Once []string
}

// destination is a checked Connection that leads somewhere.
type destination struct {
	Connection

	kind string
	key  objectKey
}

func (d *destination) String() string { return d.kind + " " + d.key.String() }

// outputs is what this process knows of the connection details of one object. The zero value knows nothing.
type outputs struct {
	// in is where they were written, version what was read there last, and details identifies what was published.
	in, version, details string
	// applied: the resource has the passwords that are there. sealed identifies those that this process last gave it, or
	// found that it has.
	applied bool
	sealed  string
	// lost are keys that only the answer to a create has, and that are missing.
	lost []string
	// handed is what answers to creates brought and is not known to be there.
	handed *handed
}

// handed is what the answer to a create brought, even if it came after the call was abandoned.
type handed struct {
	mu      sync.Mutex
	details map[string][]byte
}

func (h *handed) take(details map[string][]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.details = maps.Clone(details)
}

func (h *handed) of() map[string][]byte {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.details)
}

// publishing brings the connection details that users see up to date.
type publishing struct {
	recording

	// to is the destination; nil if the object wants no connection details, or if flaw says why it is not known. asked
	// reports whether the driver has been asked for it in this pass.
	to    *destination
	flaw  error
	asked bool
	// details are those that were observed.
	details map[string][]byte
	// passwords are those that the resource is to have, once they are durable.
	passwords map[string]string
	// undone is why publishing, or what the driver has left to do, failed.
	undone string
}

// destination asks the driver where the connection details go; nil if nowhere.
func (p *publishing) destination() (*destination, error) {
	if p.e.driver.Connection != nil && !p.asked {
		p.to, p.flaw = p.askDestination()
		p.asked = !isUnreturned(p.flaw)
	}
	return p.to, p.flaw
}

// askDestination asks the driver.
func (p *publishing) askDestination() (*destination, error) {
	obj := p.lend()
	c, err := pure(&p.e.abandoned, subjectOf(p.obj), "Connection", func() (Connection, error) { return p.e.driver.Connection(obj), nil })
	if err != nil {
		return nil, err
	}
	if len(filled([]api.Reference{c.To})) == 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	kind, name := c.To.Refers()
	d := &destination{c, kind, objectKey{Namespace: p.obj.GetNamespace(), Name: name}}
	switch {
	case p.obj.GetNamespace() == "":
		d.key.Namespace = c.Namespace
	case c.Namespace != "" && c.Namespace != p.obj.GetNamespace():
		return nil, refusedOutput(decide.ClassInvalid, "%s is in another namespace than the object", kind)
	}
	switch {
	case d.key.Namespace == "":
		return nil, refusedOutput(decide.ClassInvalid, "%s %q is in no namespace; %s.Connection must name one for cluster-scoped objects", kind, name, p.e.driver.Type)
	case kind != "Secret" && len(c.Passwords)+len(c.Once) > 0:
		return nil, refusedOutput(decide.ClassInvalid, "passwords and tokens must not be in a %s; refer to a Secret", kind)
	case !p.run.Terms().Watches(d.key.Namespace):
		return nil, refusedOutput(decide.ClassDenied, "%s", unwatched(kind, d.key))
	}
	return d, nil
}

// outputError is why connection details cannot be published.
type outputError struct {
	class decide.Class
	text  string
}

func (e *outputError) Error() string { return e.text }

func refusedOutput(c decide.Class, format string, args ...any) error {
	return &outputError{c, fmt.Sprintf(format, args...)}
}

// failedToPublish is the fact that publishing failed.
func (p *publishing) failedToPublish(err error) {
	class := decide.ClassTransient
	if e, ok := errors.AsType[*outputError](err); ok {
		class = e.class
	}
	p.undone = plain.Error(err)
	p.facts.Publish = decide.Answer{Of: decide.ActionPublish, Failed: true, Class: class}
	p.trace.Emit(trace.Call{Op: "publish", Err: p.undone})
}

// compareOutputs finds out, from the cache, whether users see the connection details of the resource. It returns how
// the passwords of the resource differ from those that users see.
func (p *publishing) compareOutputs(ctx context.Context, details map[string][]byte) change.List {
	f := &p.facts
	f.Unpublished, f.Incomplete = false, false
	to, err := p.destination()
	if err != nil {
		p.failedToPublish(err)
		f.Unpublished = true
	}
	if to == nil {
		return nil
	}
	p.details = details
	o := &p.track.outputs
	found := metadataOf(to.kind)
	err = p.run.Client().Get(ctx, to.key, found)
	if err != nil || o.in != to.String() || o.version != found.ResourceVersion || o.details != digestOf(details) || len(o.handed.of()) > 0 {
		f.Unpublished = true
		return nil
	}
	return p.knownOutputs()
}

// knownOutputs takes over what is known of what users see.
func (p *publishing) knownOutputs() change.List {
	o := &p.track.outputs
	p.facts.Incomplete = len(o.lost) > 0
	if o.applied || p.to == nil || p.facts.Unpublished {
		return nil
	}
	var due change.List
	for _, key := range p.to.Passwords {
		due = append(due, change.Change{Path: passwordPath + key, Want: "set", Have: "unset", Sensitive: true})
	}
	return due
}

// storing is what store is to make durable.
type storing struct {
	details map[string][]byte
	// given: the resource has the passwords of this pass.
	given bool
	// taken: the resource does not have them after all.
	taken bool
	// create reports whether the next call creates the resource of the present incarnation, for the first time or again.
	create bool
}

// store makes details durable where users see them. It makes passwords that are missing.
func (p *publishing) store(ctx context.Context, s storing) error {
	to, err := p.destination()
	if to == nil || err != nil {
		return err
	}
	brought := p.track.outputs.handed.of()
	all := maps.Clone(brought)
	if all == nil {
		all = map[string][]byte{}
	}
	maps.Copy(all, s.details)
	s.details = all
	for try := range storeAttempts {
		var is outlet
		if is, err = p.storeOnce(ctx, to, s); err == nil {
			if len(brought) > 0 {
				p.track.outputs.handed = nil
			}
			p.stored(to, is)
			return nil
		}
		_, final := errors.AsType[*outputError](err)
		interfered := apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
		if final || !interfered && len(brought) == 0 { // what only the answer to a create has is worth some patience
			return err
		}
		if !interfered {
			<-time.After(storePause << try)
		}
	}
	return err
}

const (
	// storeAttempts is how often a write is tried that others interfere with.
	storeAttempts = 4
	// storePause is how long it is waited after an error first; it doubles.
	storePause = 100 * time.Millisecond
)

// storeOnce is store as long as nobody interferes.
func (p *publishing) storeOnce(ctx context.Context, to *destination, s storing) (outlet, error) {
	is := newOutlet(to.kind)
	err := p.run.Live().Get(ctx, to.key, is.Object)
	exists := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return is, fmt.Errorf("read %s: %w", to, err)
	}
	if exists {
		if err := p.owns(to, is); err != nil {
			return is, err
		}
	}
	before, _ := is.DeepCopyObject().(client.Object)
	if changed := p.fill(to, is, s); !changed && exists {
		return is, nil
	}
	if exists {
		err = p.run.Client().Patch(ctx, is.Object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	} else if err = p.adorn(to, is); err == nil {
		err = p.run.Client().Create(ctx, is.Object)
	}
	if err != nil {
		return is, fmt.Errorf("write %s: %w", to, err)
	}
	p.trace.Emit(trace.Call{Op: "publish", Target: to.String(), Result: "ok"})
	return is, nil
}

// fill sets what is to be durable, and reports whether that changes anything.
func (p *publishing) fill(to *destination, is outlet, s storing) (changed bool) {
	if s.create && len(to.Once) > 0 { // what an earlier resource had is not that of the next one
		if incarnation := strconv.FormatInt(p.incarnation(), 10); setAnnotation(is, api.AnnotationIncarnation, incarnation) {
			changed = true
			for _, key := range to.Once {
				is.drop(key)
			}
		}
	}
	for key, value := range s.details {
		changed = is.set(key, value) || changed
	}
	for _, key := range to.Passwords {
		if len(is.get(key)) == 0 {
			changed = is.set(key, []byte(rand.Text())) || changed
		}
	}
	if s.given && len(to.Passwords) > 0 {
		seal := p.seal(p.passwords)
		changed = setAnnotation(is, api.AnnotationPasswords, seal) || changed
		p.track.outputs.sealed = seal
	}
	if s.taken {
		changed = setAnnotation(is, api.AnnotationPasswords, "") || changed
	}
	return changed
}

// owns returns an error unless what users see is the object's own.
func (p *publishing) owns(to *destination, is outlet) error {
	switch {
	case !metav1.IsControlledBy(is, p.obj):
		return refusedOutput(decide.ClassConflict, "%s exists and does not belong to this object; delete it, or name another one", to)
	case is.GetDeletionTimestamp() != nil:
		return refusedOutput(decide.ClassTransient, "%s is being deleted", to)
	}
	return nil
}

// adorn makes what is to be created the object's own: it goes with the object.
func (p *publishing) adorn(to *destination, is outlet) error {
	kind, err := p.run.Client().GroupVersionKindFor(p.obj)
	if err != nil {
		return err
	}
	is.SetNamespace(to.key.Namespace)
	is.SetName(to.key.Name)
	owner := metav1.NewControllerRef(p.obj, kind)
	owner.BlockOwnerDeletion = nil // that would need permission to change finalizers of the object
	is.SetOwnerReferences([]metav1.OwnerReference{*owner})
	return nil
}

// stored notes what users see now.
func (p *publishing) stored(to *destination, is outlet) {
	o := &p.track.outputs
	now := outputs{in: to.String(), version: is.GetResourceVersion(), details: o.details, applied: true, sealed: o.sealed, handed: o.handed}
	p.passwords = map[string]string{}
	for _, key := range to.Passwords {
		p.passwords[key] = string(is.get(key))
	}
	if len(to.Passwords) > 0 {
		seal := p.seal(p.passwords)
		now.applied = is.GetAnnotations()[api.AnnotationPasswords] == seal && (o.sealed == "" || o.sealed == seal) // it may come from a backup
		if now.applied {
			now.sealed = seal
		}
	}
	for _, key := range to.Once {
		if len(is.get(key)) == 0 {
			now.lost = append(now.lost, key)
		}
	}
	*o = now
}

// reserve makes sure, before a create or update, that the passwords are durable and, before a create, that there is a place
// for what it returns.
func (p *publishing) reserve(ctx context.Context, create bool) bool {
	if err := p.store(ctx, storing{create: create}); err != nil {
		p.failedToPublish(err)
		return false
	}
	return true
}

// publish makes the observed connection details durable. It returns how the passwords of the resource differ.
func (p *publishing) publish(ctx context.Context) change.List {
	if err := p.store(ctx, storing{details: p.details}); err != nil {
		p.failedToPublish(err)
		return nil
	}
	p.track.outputs.details = digestOf(p.details)
	p.facts.Unpublished = false
	return p.knownOutputs()
}

// handOver makes durable what the answer to a create brought and, if given, that the resource has the passwords. If that
// fails, it is repeated as long as the process lives.
func (p *publishing) handOver(ctx context.Context, given bool) {
	if p.to == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverTime)
	defer cancel()
	if err := p.store(ctx, storing{given: given}); err != nil {
		p.failedToPublish(err)
	}
}

// handOverTime bounds how long what an answer brought is written.
const handOverTime = 30 * time.Second

// handOverLate writes what an earlier pass could not write.
func (p *publishing) handOverLate(ctx context.Context) {
	if len(p.track.outputs.handed.of()) == 0 {
		return
	}
	if _, err := p.destination(); err == nil {
		p.handOver(ctx, false)
	}
}

// takeBackPasswords makes durable that the resource may not have the passwords that it was to get, and reports whether it
// is.
func (p *publishing) takeBackPasswords(ctx context.Context) bool {
	to, err := p.destination()
	if p.facts.Deleting || err == nil && (to == nil || len(to.Passwords) == 0) {
		return true
	}
	if err == nil {
		err = p.store(ctx, storing{taken: true})
	}
	if err != nil {
		p.failedToPublish(err)
	}
	return err == nil
}

// readPasswords reads the passwords that the resource has or is to have, so that they are known in messages.
func (p *publishing) readPasswords(ctx context.Context) error {
	to, err := p.destination()
	if err != nil || to == nil || len(to.Passwords) == 0 || p.passwords != nil {
		return nil //nolint:nilerr // it has its place in the status
	}
	is := newOutlet(to.kind)
	if err := p.run.Live().Get(ctx, to.key, is.Object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read %s: %w", to, err)
	}
	p.passwords = map[string]string{}
	for _, key := range to.Passwords {
		p.passwords[key] = string(is.get(key))
	}
	return nil
}

// hasPasswords reports whether there are passwords that the resource is to have.
func (p *publishing) hasPasswords() bool {
	to, err := p.destination()
	return err != nil || to != nil && len(to.Passwords) > 0
}

// passwordPath is how the paths of changes of passwords begin.
const passwordPath = "connection."

// withoutPasswords are the changes of everything else.
func withoutPasswords(changes change.List) change.List {
	return slices.DeleteFunc(slices.Clone(changes), func(c change.Change) bool { return strings.HasPrefix(c.Path, passwordPath) })
}

// missingOutput says where a connection detail is missing.
func (p *publishing) missingOutput() string {
	if p.to == nil || len(p.track.outputs.lost) == 0 {
		return ""
	}
	return fmt.Sprintf("%s has no key %q", p.to, strings.Join(p.track.outputs.lost, `" and "`))
}

// seal identifies passwords, which may be weak, without telling them.
func (p *publishing) seal(passwords map[string]string) string {
	text, err := json.Marshal(passwords) // sorts keys
	if err == nil {
		text, err = pbkdf2.Key(sha256.New, string(text), []byte(p.obj.GetUID()), 100_000, sha256.Size)
	}
	if err != nil {
		panic("external: " + err.Error()) // no input can cause it
	}
	return hex.EncodeToString(text)
}

// digestOf identifies connection details.
func digestOf(details map[string][]byte) string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(details)) {
		fmt.Fprintf(h, "%q=%q\n", key, details[key])
	}
	return hex.EncodeToString(h.Sum(nil))
}
