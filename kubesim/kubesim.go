package kubesim

import (
	"io/fs"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/trimtab-dev/trimtab/kubesim/internal/actor"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// KubernetesVersion is the version of the API server whose code runs here.
const KubernetesVersion = apiserver.Version

// Options say what a cluster has from the start. The zero value is a cluster with the
// built-in kinds alone.
type Options struct {
	// CRDs holds CustomResourceDefinitions as YAML or JSON files in any of its folders, such
	// as os.DirFS("config/crd/bases"). Documents of other kinds are skipped. Nil means none.
	CRDs fs.FS
	// Definitions are CustomResourceDefinitions beside those in files.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// Webhooks holds MutatingWebhookConfigurations and ValidatingWebhookConfigurations as YAML or JSON
	// files in any of its folders, such as os.DirFS("config/webhook"). Documents of other kinds are skipped.
	// Nil means none. See [Cluster.ServeWebhooks].
	Webhooks fs.FS
	// Manual leaves the garbage collector and the deletion of namespaces to [Cluster.Settle].
	// If it is false they act after each write, before its answer arrives.
	Manual bool
	// Pick chooses which of the writes that the garbage collector and the deletion of
	// namespaces want to make comes next: an index into wanted, which says each in words and
	// has at least one. Real ones make them in any order. Nil takes the first.
	Pick func(wanted []string) int
}

// Cluster is a simulated cluster: an API server with its objects. It is safe for concurrent
// use.
type Cluster struct {
	server      *apiserver.Server
	db          *store.DB
	manual      bool
	pick        func(wanted []string) int
	controllers controllers

	t testing.TB
}

// New starts a cluster, which ends with the test. What is wrong with the options fails it.
// Clusters share nothing that a test could notice.
func New(t testing.TB, o Options) *Cluster {
	t.Helper()
	crds, err := apiserver.ReadCRDs(o.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	server, err := apiserver.New(append(crds, o.Definitions...))
	if err != nil {
		t.Fatal(err)
	}
	db := server.Begin()
	if err := apiserver.Populate(db); err != nil {
		t.Fatal(err)
	}
	if err := furnishWebhooks(server, db, o.Webhooks); err != nil {
		t.Fatal(err)
	}
	return &Cluster{
		server: server, db: db, manual: o.Manual, pick: o.Pick, controllers: controllers{actors: actor.New(server, db)}, t: t,
	}
}

// Config returns how an administrator reaches the cluster. Each call returns a new one, which
// the caller may change; only its Transport must stay. Its clients are not slowed down, and
// do not print the server's warnings: set WarningHandler to see them.
func (c *Cluster) Config() *rest.Config { return c.config(nil) }

// As returns how a user reaches the cluster: what the cluster's Roles allow it to do and no
// more. The name of a service account is system:serviceaccount:NAMESPACE:NAME. The groups that
// the API server itself adds are added: system:authenticated, and those of service accounts.
func (c *Cluster) As(name string, groups ...string) *rest.Config {
	groups = append(slices.Clone(groups), user.AllAuthenticated)
	if namespace, _, err := serviceaccount.SplitUsername(name); err == nil {
		groups = append(groups, serviceaccount.MakeGroupNames(namespace)...)
	}
	return c.config(&user.DefaultInfo{Name: name, Groups: groups})
}

func (c *Cluster) config(who user.Info) *rest.Config {
	transport := &apiserver.Transport{
		Server: c.server,
		Client: apiserver.Client{DB: c.db, User: who, Warn: true},
	}
	if !c.manual {
		transport.Around = c.settled
	}
	return &rest.Config{Host: "http://kubesim", QPS: -1, Transport: transport, WarningHandler: rest.NoWarnings{}}
}
