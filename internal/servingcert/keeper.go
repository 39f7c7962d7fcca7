package servingcert

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options of a [Keeper]. Client, Secret, Hosts and Configurations are required.
type Options struct {
	// Client reads from the API server, past any cache.
	Client client.WithWatch
	// Secret has the certificate.
	Secret types.NamespacedName
	// Hosts are the names and addresses at which the API server reaches the webhooks.
	Hosts []string
	// Configurations are the webhook configurations that are to trust the certificate: those that the operator prints.
	Configurations []client.Object
	// URL is the base of the URLs of webhooks. Empty means that they are reached at their Service.
	URL string
	// Lifetime of certificates. Zero means 90 days.
	Lifetime time.Duration
	// Settle is how long API servers get to learn of a new authority. Zero means one hour.
	Settle time.Duration
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// Keeper keeps a certificate. Its methods may be called at the same time.
type Keeper struct {
	options Options
	terms   terms

	mu      sync.Mutex
	serving *tls.Certificate
	trusted bool // the configurations have trusted it once
	problem error
}

// New returns a keeper, whose certificate is there after the first [Keeper.Step].
func New(o Options) *Keeper {
	if o.Lifetime == 0 {
		o.Lifetime = 90 * 24 * time.Hour
	}
	if o.Settle == 0 {
		o.Settle = time.Hour
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Keeper{options: o, terms: terms{o.Hosts, o.Lifetime, o.Settle}, problem: errors.New("the certificate has not been read yet")}
}

const (
	// shortest is the pause after a failure, which doubles up to longest, and after a change that somebody made.
	shortest = time.Second
	longest  = time.Minute
)

// Run calls [Keeper.Step] until ctx ends: now and then, after a failure, and when the Secret or a configuration changes. It
// calls report after each call.
func (k *Keeper) Run(ctx context.Context, report func(expiry time.Time, err error)) {
	changed := make(chan struct{}, 1)
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { k.watch(ctx, &corev1.SecretList{}, k.options.Secret, changed) })
	for _, c := range k.options.Configurations {
		watching.Go(func() { k.watch(ctx, listOf(c), client.ObjectKeyFromObject(c), changed) })
	}
	for retry := shortest; ; {
		wait, err := k.options.Settle/4, k.Step(ctx)
		if ctx.Err() != nil {
			return
		}
		report(k.Expiry(), err)
		if err != nil {
			wait, retry = min(wait, retry), min(2*retry, longest)
		} else {
			retry = shortest
		}
		select {
		case <-changed:
			pause(ctx, shortest) // whoever keeps changing it makes no hot loop
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// watch tells of changes of an object until ctx ends. A watch begins with what is there, so none is missed.
func (k *Keeper) watch(ctx context.Context, list client.ObjectList, key client.ObjectKey, changed chan<- struct{}) {
	for ctx.Err() == nil {
		w, err := k.options.Client.Watch(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{metav1.ObjectNameField: key.Name})
		if err != nil {
			pause(ctx, longest)
			continue
		}
		stay := context.AfterFunc(ctx, w.Stop)
		tell(changed) // it may have been deleted meanwhile
		for range w.ResultChan() {
			tell(changed)
		}
		stay()
		w.Stop()
		pause(ctx, shortest)
	}
}

func tell(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Step brings the Secret, what is served and the configurations up to date.
func (k *Keeper) Step(ctx context.Context) error {
	err := k.step(ctx)
	for range 10 { // each conflict means that another replica got something done
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
		err = k.step(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.problem = err
	k.trusted = k.trusted || err == nil
	return err
}

// step reads the configurations before the Secret and guards its writes by resourceVersion. So no replica replaces a bundle
// by an older one: what it read of the Secret is at least as new as the bundle that it replaces.
func (k *Keeper) step(ctx context.Context) error {
	found := make([]client.Object, len(k.options.Configurations))
	for i, wanted := range k.options.Configurations {
		var err error
		if found[i], err = k.configuration(ctx, wanted); err != nil {
			return err
		}
	}
	data, err := k.secret(ctx, found)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(data[keyCert], data[keyKey])
	if err != nil {
		return fmt.Errorf("the certificate in Secret %s: %w", k.options.Secret, err)
	}
	k.mu.Lock()
	k.serving = &pair
	k.mu.Unlock()
	for i, c := range found {
		if err := k.publish(ctx, c, k.options.Configurations[i], data[keyBundle]); err != nil {
			return err
		}
	}
	return k.missing(found)
}

// missing returns an error if the API server is not told of all webhooks.
func (k *Keeper) missing(found []client.Object) error {
	for i, c := range found {
		if c == nil {
			continue // it was created just now
		}
		wanted := k.options.Configurations[i]
		for _, name := range slices.Sorted(maps.Keys(clients(wanted))) {
			if clients(c)[name] == nil {
				return fmt.Errorf("webhook %s is never called: the %s %s is of another version of the operator; apply what the command manifests prints, "+
					"or, if the operator runs outside the cluster, delete the configuration, and it is created again", name, wanted.GetObjectKind().GroupVersionKind().Kind, wanted.GetName())
			}
		}
	}
	return nil
}

// secret returns the data of the Secret, which it creates or changes if that is due.
func (k *Keeper) secret(ctx context.Context, configurations []client.Object) (map[string][]byte, error) {
	s := &corev1.Secret{}
	err := k.options.Client.Get(ctx, k.options.Secret, s)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	published := true
	for _, c := range configurations {
		published = published && trusts(c, s.Data[keyBundle])
	}
	data, fault := k.terms.advance(s.Data, published, k.options.Now())
	switch {
	case fault != nil:
		return nil, fault
	case apierrors.IsNotFound(err):
		s = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.options.Secret.Namespace, Name: k.options.Secret.Name}, Type: corev1.SecretTypeTLS, Data: data}
		err = k.options.Client.Create(ctx, s)
	case same(s.Data, data):
		return data, nil
	default:
		s.Data = data
		err = k.options.Client.Update(ctx, s)
	}
	if err != nil {
		return nil, fmt.Errorf("store the certificate: %w", err)
	}
	return data, nil
}

// configuration reads a webhook configuration. Where webhooks are reached at a URL, which is in development, it creates one
// that does not exist.
func (k *Keeper) configuration(ctx context.Context, wanted client.Object) (client.Object, error) {
	c := wanted.DeepCopyObject().(client.Object)
	err := k.options.Client.Get(ctx, client.ObjectKeyFromObject(wanted), c)
	if apierrors.IsNotFound(err) && k.options.URL != "" {
		return nil, nil //nolint:nilnil // publish creates it
	}
	if err != nil {
		return nil, fmt.Errorf("read the webhook configuration: %w", err)
	}
	return c, nil
}

// publish has a configuration trust bundle. It changes nothing else, except from where the API server calls webhooks if that
// is a URL.
func (k *Keeper) publish(ctx context.Context, found, wanted client.Object, bundle []byte) error {
	if found == nil {
		created := wanted.DeepCopyObject().(client.Object)
		k.point(created, wanted, bundle)
		if err := k.options.Client.Create(ctx, created); err != nil {
			return fmt.Errorf("create the webhook configuration: %w", err)
		}
		return nil
	}
	before := found.DeepCopyObject().(client.Object)
	if !k.point(found, wanted, bundle) {
		return nil
	}
	err := k.options.Client.Patch(ctx, found, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("have the webhook configuration trust the certificate: %w", err)
	}
	return nil
}

// point changes how a configuration reaches its webhooks, and reports whether that was necessary. Without a URL it changes
// the bundle alone, unless the configuration was left behind by a process that had a URL.
func (k *Keeper) point(c, wanted client.Object, bundle []byte) bool {
	changed := false
	now, want := clients(c), clients(wanted)
	for name, to := range now {
		if !bytes.Equal(to.CABundle, bundle) {
			to.CABundle, changed = bundle, true
		}
		printed := want[name]
		if printed == nil || printed.Service == nil {
			continue // of another version of the operator
		}
		switch url := k.options.URL + *printed.Service.Path; {
		case k.options.URL != "" && (to.URL == nil || *to.URL != url):
			to.URL, to.Service, changed = &url, nil, true
		case k.options.URL == "" && to.Service == nil:
			to.URL, to.Service, changed = nil, printed.Service, true
		}
	}
	return changed
}

func trusts(c client.Object, bundle []byte) bool {
	if c == nil {
		return false
	}
	for _, to := range clients(c) {
		if !bytes.Equal(to.CABundle, bundle) {
			return false
		}
	}
	return true
}

// listOf returns an empty list of the kind of a configuration.
func listOf(c client.Object) client.ObjectList {
	if _, is := c.(*admissionregistrationv1.MutatingWebhookConfiguration); is {
		return &admissionregistrationv1.MutatingWebhookConfigurationList{}
	}
	return &admissionregistrationv1.ValidatingWebhookConfigurationList{}
}

// clients returns how the API server calls the webhooks of a configuration, by their names.
func clients(c client.Object) map[string]*admissionregistrationv1.WebhookClientConfig {
	out := map[string]*admissionregistrationv1.WebhookClientConfig{}
	switch c := c.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range c.Webhooks {
			out[c.Webhooks[i].Name] = &c.Webhooks[i].ClientConfig
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range c.Webhooks {
			out[c.Webhooks[i].Name] = &c.Webhooks[i].ClientConfig
		}
	}
	return out
}

// GetCertificate is for [tls.Config].
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.serving == nil {
		return nil, k.problem
	}
	return k.serving, nil
}

// Expiry returns when the certificate that is served expires. It is zero without one.
func (k *Keeper) Expiry() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.serving == nil {
		return time.Time{}
	}
	return k.serving.Leaf.NotAfter
}

// Check is a readiness check: it fails until a valid certificate is served and trusted. Once that is so, a failure to look
// at it again is no reason to stop serving.
func (k *Keeper) Check(*http.Request) error {
	expiry := k.Expiry()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.serving == nil || !k.trusted:
		return k.problem
	case k.options.Now().After(expiry):
		return errors.Join(errors.New("the certificate has expired"), k.problem)
	}
	return nil
}
