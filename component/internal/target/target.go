package target

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trimtab-dev/trimtab/component/internal/projection"
	"github.com/trimtab-dev/trimtab/component/internal/prune"
	"github.com/trimtab-dev/trimtab/internal/apply"
	"github.com/trimtab-dev/trimtab/internal/clusterid"
)

// Target is an API server as one user sees it.
type Target struct {
	Client *apply.Client
	Cache  *projection.Cache
	Mapper meta.RESTMapper
	// Shield protects the definitions there.
	Shield prune.Shield
	// Direct reads and writes without a cache.
	Direct client.Client
	// APIs are those that the API server serves.
	APIs *APIs

	// elsewhere: the API server is that of a kubeconfig. cluster knows which one it is.
	elsewhere bool
	cluster   clusterid.Reader

	reach    *reach         // nil for the manager's own identity
	requests rest.Interface // nil for the manager's own identity
	// release closes the connections.
	release func()
}

// Local reports whether requests are the manager's own.
func (t *Target) Local() bool { return t.reach == nil }

// Cluster identifies the cluster. It is empty if the API server is the manager's own, and [Unknown] if the
// user may not ask.
func (t *Target) Cluster(ctx context.Context) (string, error) {
	if !t.elsewhere {
		return "", nil
	}
	id, err := t.cluster.Get(ctx, t.Direct)
	if apierrors.IsForbidden(err) {
		return Unknown, nil
	}
	return id, err
}

// Unknown is what identifies all clusters of which it is not known which they are.
const Unknown = "unknown"

// run runs the cache until ctx ends.
func (t *Target) run(ctx context.Context) {
	_ = t.Cache.Start(ctx) // ends with the context alone
	t.release()
}

// Check returns an [UnreachableError] if it is known that the API server does not answer. It sends no
// request as long as the server answers.
func (t *Target) Check(ctx context.Context) error {
	if t.reach == nil {
		return nil
	}
	return t.reach.check(ctx, func(ctx context.Context) error {
		return t.requests.Get().AbsPath("/version").Do(ctx).Error()
	})
}

// dialing is how long a connection may take to be made.
const dialing = 5 * time.Second

// remote makes the target of an identity. changed is called when the server stops answering, and when it
// answers again.
func (o Options) remote(ctx context.Context, id Identity, changed func()) (*Target, error) {
	config, err := id.config(o.Config, o.Allow)
	if err != nil {
		return nil, err
	}
	r := &reach{server: serverOf(config), changed: changed}
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: dialing, KeepAlive: dialing}).DialContext
	}
	connections := connrotation.NewDialer(config.Dial)
	config.Dial = connections.DialContext
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{r, next} })
	if id.User == "" && len(id.Groups) > 0 {
		if config.Impersonate.UserName, err = o.unimpersonated(ctx, config); err != nil {
			return nil, err
		}
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil { // may quote the kubeconfig
		return nil, fmt.Errorf("the kubeconfig for %s has a certificate or a key that cannot be decoded, or credentials that exclude each other", r.server)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", r.server, err)
	}
	t, err := o.target(config, httpClient, mapper)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", r.server, err)
	}
	t.reach, t.release, t.elsewhere = r, connections.CloseAll, id.Kubeconfig != nil
	t.requests, err = restClient(config, httpClient)
	return t, err
}

// unimpersonated returns the name of the user who would impersonate.
func (o Options) unimpersonated(ctx context.Context, config *rest.Config) (string, error) {
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", fmt.Errorf("the kubeconfig for %s has credentials that cannot be decoded, or that exclude each other", serverOf(config))
	}
	return whoami(ctx, config, httpClient)
}

// target makes a target of a client configuration.
func (o Options) target(config *rest.Config, httpClient *http.Client, mapper meta.RESTMapper) (*Target, error) {
	writes, err := apply.New(config, httpClient, mapper, o.Names.Manager)
	if err != nil {
		return nil, err
	}
	cache, err := projection.New(projection.Options{
		Config: config, HTTPClient: httpClient, Mapper: mapper, Names: o.Names, Changed: o.Changed, Wake: o.Wake, Idle: o.IdleWatch,
	})
	if err != nil {
		return nil, err
	}
	scheme := o.Scheme
	if scheme == nil {
		scheme = runtime.NewScheme()
	}
	direct, err := client.New(config, client.Options{HTTPClient: httpClient, Mapper: mapper, Scheme: scheme})
	if err != nil {
		return nil, err
	}
	ask, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	return &Target{Client: writes, Cache: cache, Mapper: mapper, Direct: direct, APIs: newAPIs(ask)}, nil
}

// restClient returns a client for requests by path.
func restClient(config *rest.Config, httpClient *http.Client) (rest.Interface, error) {
	config = dynamic.ConfigFor(config)
	config.GroupVersion = &schema.GroupVersion{}
	config.APIPath = "/"
	return rest.RESTClientForConfigAndClient(config, httpClient)
}
