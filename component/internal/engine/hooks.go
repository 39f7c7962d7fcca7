package engine

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/graph"
)

// Delete hooks are objects that exist only while the component is deleted. A deletion renders nothing, so they are stored
// as they were rendered, in a Secret among the dependents. A deletion goes through the stages of [api.DeletionStage]:
//
//	PreDelete -> Dependents -> PostDelete -> Rest
//
// The status has a stage before anything is done in it. In PreDelete and PostDelete, the hooks are wanted, and everything
// else is held: they are recorded, applied in waves and watched like the dependents of a component that is not deleted. In
// Dependents, the Secret is held, and what it needs. Whatever is recorded and not wanted goes, also hooks that have ended.

const (
	hooksSuffix = "-delete-hooks"
	hooksKey    = "objects" // of the data of the Secret
	hooksType   = "trimtab.dev/delete-hooks"
	hooksWave   = "-32768"  // it is there before anything else
	hooksExit   = 1<<15 - 1 // nothing waits for it to go
	mostStored  = corev1.MaxSecretSize
)

// heldForHooks is why a member is not deleted yet.
const heldForHooks = "is kept for the delete hooks"

// WithoutHooksKey is the annotation of a component that is deleted without its delete hooks.
func WithoutHooksKey(name string) string { return name + "/skip-delete-hooks" }

// store replaces the hooks among what was rendered by the Secret that has them.
func (p *pass) store(objects []client.Object) ([]client.Object, error) {
	hooks, others, err := desired.Split(objects, p.Name, p.Scheme)
	if err != nil || len(hooks) == 0 {
		return others, err
	}
	lenient := func(kind schema.GroupKind, version string) (namespaced, known bool) { // it may be served by then
		namespaced, known = p.scope(kind, version)
		return namespaced || !known, true
	}
	for _, event := range []string{desired.PreDelete, desired.PostDelete} {
		checked, err := p.normalizeHooks(hooks, event, lenient)
		if err = errors.Join(err, p.allowed(checked)); err != nil {
			return nil, fmt.Errorf("%s hooks: %w", event, err)
		}
	}
	for _, h := range hooks {
		if kind := h.GroupVersionKind().GroupKind(); p.Drivers[kind] != nil {
			return nil, fmt.Errorf("%s %s is no Kubernetes object, and cannot be a delete hook; remove the annotation %s", kind.Kind, h.GetName(), desired.EventKey(p.Name))
		}
	}
	data, err := pack(hooks)
	if err != nil {
		return nil, err
	}
	if len(data) > mostStored {
		return nil, fmt.Errorf("the delete hooks have %d bytes when they are compressed, and the Secret that stores them can have %d; leave some out or make them smaller",
			len(data), mostStored)
	}
	return append(others, p.hooksSecret(p.c.In, p.c.As+hooksSuffix, p.firstWave(others), data)), nil
}

// firstWave is the wave of the Secret with hooks: the first one, or that of its namespace if the component has that.
func (p *pass) firstWave(objects []client.Object) string {
	for _, o := range objects {
		if desired.IsNil(o) { // that is reported later
			continue
		}
		if _, is := o.(*corev1.Namespace); o.GetName() == p.c.In && (is || o.GetObjectKind().GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Namespace"}) {
			return cmp.Or(o.GetAnnotations()[p.Name+"/apply-order"], "0")
		}
	}
	return hooksWave
}

// mayStoreHooks reports whether a dependent may be the Secret with hooks. Its type says whether it is.
func mayStoreHooks(item api.InventoryItem) bool {
	return kindOf(item) == schema.GroupKind{Kind: "Secret"} && strings.HasSuffix(item.Name, hooksSuffix)
}

// pack encodes hooks.
func pack(hooks []*unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if err := errors.Join(json.NewEncoder(z).Encode(hooks), z.Close()); err != nil {
		return nil, fmt.Errorf("encode the delete hooks: %w", err)
	}
	return out.Bytes(), nil
}

// unpack decodes hooks.
func unpack(data []byte) (hooks []*unstructured.Unstructured, err error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	var list []map[string]any
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	for _, content := range list {
		hooks = append(hooks, &unstructured.Unstructured{Object: content})
	}
	return hooks, nil
}

// hooksSecret is the Secret with hooks. No default of the operator or of the component applies to it.
func (p *pass) hooksSecret(namespace, name, wave string, data []byte) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": hooksType,
		"metadata": map[string]any{"namespace": namespace, "name": name, "annotations": map[string]any{
			p.Name + "/apply-order": wave, p.Name + "/adoption-policy": string(api.AdoptionPolicyNever), p.Name + "/delete-policy": string(api.DeletePolicyDelete),
			p.Name + "/reconcile-policy": string(api.ReconcilePolicyOnObjectChange),
		}},
		"data": map[string]any{hooksKey: base64.StdEncoding.EncodeToString(data)},
	}}
}

// hookOptions are those with which hooks and their Secret are checked.
func (p *pass) hookOptions() desired.Options {
	policies := p.c.Policies
	policies.DeletePolicy, policies.ReconcilePolicy, policies.Mode = api.DeletePolicyDelete, api.ReconcilePolicyOnObjectChange, ""
	return desired.Options{
		Name: p.Name, OwnerID: p.c.Owner, OwnerUID: string(p.c.UID), Generation: p.c.Generation, Namespace: p.c.In, Policies: policies, Scope: p.scope,
		Scheme: p.Scheme, ManagedTypes: p.ManagedTypes, HealthRule: p.Rules.Check, Hooks: true,
	}
}

// normalizeHooks returns the hooks of an event.
func (p *pass) normalizeHooks(hooks []*unstructured.Unstructured, event string, scope func(schema.GroupKind, string) (bool, bool)) ([]desired.Object, error) {
	var list []client.Object
	for _, h := range hooks {
		if is := p.eventOf(h); is == event || is != desired.PostDelete && event == desired.PreDelete {
			list = append(list, h)
		}
	}
	o := p.hookOptions()
	o.Scope = scope
	return desired.Normalize(list, o)
}

// eventOf returns the event of a hook.
func (p *pass) eventOf(hook *unstructured.Unstructured) string {
	return strings.TrimSpace(hook.GetAnnotations()[desired.EventKey(p.Name)])
}

// deleteHooks are the delete hooks in a pass.
type deleteHooks struct {
	*pass

	// stage is that of the deletion; empty if there are no hooks.
	stage api.DeletionStage
	// secret is the item of the Secret; nil if there is none.
	secret *api.InventoryItem
	// objects are the hooks that are wanted.
	objects []desired.Object
	// blocked is why the deletion cannot go on.
	blocked string
	err     error
}

// event is that of the hooks of a stage; empty if there are none.
func (h *deleteHooks) event() string {
	switch h.stage {
	case api.DeletionStagePreDelete:
		return desired.PreDelete
	case api.DeletionStagePostDelete:
		return desired.PostDelete
	case api.DeletionStageDependents, api.DeletionStageRest, api.DeletionStageSkipped:
	}
	return ""
}

func (h *deleteHooks) title() string { return h.event() + " hooks" }

// deleteHooks finds the stage of the deletion and the hooks that it wants.
func (p *pass) deleteHooks(ctx context.Context) *deleteHooks {
	h := &deleteHooks{pass: p, stage: p.c.Status.DeletionStage}
	for i, item := range p.c.Status.Inventory {
		if mayStoreHooks(item) && (h.secret == nil || item.Namespace == p.c.In && item.Name == p.c.As+hooksSuffix) {
			h.secret = &p.c.Status.Inventory[i]
		}
	}
	policy := p.c.Policies.DeletePolicy
	lost := slices.ContainsFunc(p.found, mayStoreHooks) || h.secret != nil && len(p.found) > 0
	switch {
	case h.stage == api.DeletionStageRest || h.stage == api.DeletionStageSkipped:
	case h.secret == nil && h.stage == "" && !lost: // there are none
	case h.secret == nil, lost, // the inventory was lost, and with it what the Secret must have
		h.stage == "" && leavingPhase(h.secret.Phase), // the hooks are no longer rendered: they do not belong to what is deleted
		p.c.WithoutHooks, policy == api.DeletePolicyOrphan, policy == api.DeletePolicyOrphanOnDelete:
		h.stage = api.DeletionStageRest
	default:
		h.read(ctx)
	}
	p.c.Status.DeletionStage = h.stage
	return h
}

// skippedText is why hooks do not run.
const skippedText = "delete hooks are skipped, because their namespace or the Secret that has them is gone or being deleted"

// read finds the hooks of the stage in the Secret. It is gone before the last stage only if others have deleted it.
func (h *deleteHooks) read(ctx context.Context) {
	live, err := h.Target.Client.Get(ctx, ref(*h.secret))
	gone := apierrors.IsNotFound(err) || err == nil && (live.GetDeletionTimestamp() != nil)
	foreign := err == nil && !h.mine(h.ownerOf(live), h.secret.Key())
	switch {
	case foreign && !gone && h.secret.Digest != "":
		h.blocked = fmt.Sprintf("%s has another owner annotation than the component gave it, so the delete hooks in it do not run; set its annotation %s back to %q, or %s",
			ref(*h.secret), desired.OwnerKey(h.Name), desired.OwnerAnnotation(h.c.Owner, string(h.c.UID), h.secret.Key()), h.wayOut())
		return
	case (gone || foreign) && h.secret.Digest == "": // it was never there
		h.stage = api.DeletionStageRest
		return
	case gone:
		h.stage = api.DeletionStageSkipped
		return
	case err != nil:
		h.fail(fmt.Errorf("read the delete hooks: %w", err))
		return
	}
	if kind, _, _ := unstructured.NestedString(live.Object, "type"); kind != hooksType {
		h.secret = nil
		return
	}
	text, _, _ := unstructured.NestedString(live.Object, "data", hooksKey)
	data, err := base64.StdEncoding.DecodeString(text)
	var hooks []*unstructured.Unstructured
	if err == nil {
		hooks, err = unpack(data)
	}
	genuine, failed := h.genuine(ctx, data)
	if failed != nil {
		h.fail(failed)
		return
	}
	if err != nil || !genuine {
		h.blocked = fmt.Sprintf("%s is not as the component has recorded it, so the delete hooks in it do not run; undo the change, or %s", ref(*h.secret), h.wayOut())
		return
	}
	h.choose(hooks)
}

// choose finds the hooks of the stage. Stages without hooks are left out.
func (h *deleteHooks) choose(hooks []*unstructured.Unstructured) {
	has := func(event string) bool {
		return slices.ContainsFunc(hooks, func(u *unstructured.Unstructured) bool { return h.eventOf(u) == event })
	}
	if h.stage == "" {
		h.stage = api.DeletionStagePreDelete
	}
	if h.stage == api.DeletionStagePreDelete && !has(desired.PreDelete) {
		h.stage = api.DeletionStageDependents
	}
	if h.stage == api.DeletionStageDependents && !has(desired.PostDelete) {
		h.stage = api.DeletionStageRest
	}
	if h.event() == "" {
		return
	}
	objects, err := h.normalizeHooks(hooks, h.event(), h.scope)
	if h.undiscovered != nil {
		err = fmt.Errorf("ask which kinds are served: %w", h.undiscovered)
	}
	if err = errors.Join(err, h.allowed(objects)); err != nil {
		h.fail(fmt.Errorf("%s: %w", h.title(), err))
		return
	}
	h.objects = objects
	h.c.Mode, h.c.Namespaces = "", api.NamespacePolicyDoNotCreate // it would be left behind
}

func (h *deleteHooks) fail(err error) {
	h.err = fmt.Errorf("%w; to go on without hooks, %s", err, h.wayOut())
}

// wayOut is how a deletion goes on without hooks.
func (h *deleteHooks) wayOut() string {
	return fmt.Sprintf("set %s: \"true\" on the component", WithoutHooksKey(h.Name))
}

// genuine reports whether the component stored this. Somebody who may write Secrets could have the operator create what he
// may not create himself. What was stored and not recorded, because the process was killed in between, is rendered again.
func (h *deleteHooks) genuine(ctx context.Context, data []byte) (bool, error) {
	same := func(objects []desired.Object, digest string) bool {
		return slices.ContainsFunc(objects, func(o desired.Object) bool { return o.Item.Key() == h.secret.Key() && o.Item.Digest == digest })
	}
	stored, err := desired.Normalize([]client.Object{h.hooksSecret(h.secret.Namespace, h.secret.Name, hooksWave, data)}, h.hookOptions())
	if err != nil || same(stored, h.secret.Digest) {
		return err == nil, err
	}
	rendered, err := h.render(ctx)
	if err != nil {
		return false, fmt.Errorf("%s is not as the component has recorded it, and whether the component stored it is not known: render: %w", ref(*h.secret), err)
	}
	return same(rendered, stored[0].Item.Digest), nil
}

// hold keeps what must not be deleted in the stage.
func (h *deleteHooks) hold() {
	for _, m := range h.members {
		if h.secret != nil && m.item.Key() == h.secret.Key() {
			m.item.DeleteOrder = hooksExit
		}
		if m.wanted == nil && (h.event() != "" || h.stage == api.DeletionStageDependents && h.stays(m)) {
			m.held = heldForHooks
		}
	}
}

// stays reports whether a member is there until all hooks have run: the Secret, and what it needs.
func (h *deleteHooks) stays(m *member) bool {
	return h.secret != nil && (m.item.Key() == h.secret.Key() || slices.Contains(h.secret.DependsOn, m.item.Key()))
}

// conclude finds the stage after a pass, and says what it is about.
func (h *deleteHooks) conclude(r Result) Result {
	before := h.stage
	switch {
	case h.stage == api.DeletionStageSkipped:
		r.HooksSkipped = skippedText
	case h.event() != "" && r.terminating:
		h.stage, r.Err, r.HooksSkipped = api.DeletionStageSkipped, nil, skippedText
	case h.stage == api.DeletionStagePreDelete && r.settled: // whatever failed elsewhere
		h.stage = api.DeletionStageDependents
	case h.stage == api.DeletionStagePostDelete && r.settled:
		h.stage = api.DeletionStageRest
	case h.stage == api.DeletionStageDependents && h.done():
		h.stage = api.DeletionStagePostDelete
	}
	switch {
	case h.stage != before:
		h.c.Status.DeletionStage = h.stage
		r.Ready, r.Waiting, r.Again = false, "the stage of the deletion is recorded", soon
	case h.event() == "":
	case r.Err != nil:
		r.Err = fmt.Errorf("%s: %w; to go on without hooks, %s", h.title(), r.Err, h.wayOut())
	case r.Failed != "":
		r.Blocked = fmt.Sprintf("%s: %s; delete it to have it run again, or %s to go on without hooks", h.title(), r.Failed, h.wayOut())
		r.Again = h.recheck()
	case r.Blocked == "":
		r.Waiting = fmt.Sprintf("%s: %s; to go on without hooks, %s", h.title(), r.Waiting, h.wayOut())
	}
	if r.Late != "" {
		r.Late = fmt.Sprintf("%s: %s; to go on without hooks, %s", h.title(), r.Late, h.wayOut())
	}
	if h.stage == api.DeletionStageSkipped && r.Waiting != "" {
		r.Waiting = skippedText + "; " + r.Waiting
	}
	return r
}

// done reports whether all is deleted that goes before the hooks after the deletion.
func (h *deleteHooks) done() bool {
	for _, m := range h.members {
		if !m.forgotten && !h.stays(m) {
			return false
		}
	}
	return true
}

// terminating reports whether something could not be created because its namespace is being deleted.
func terminating(failed map[graph.Key]error) bool {
	for _, err := range failed {
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return true
		}
	}
	return false
}
