package apiserver

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"net"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	api "k8s.io/kubernetes/pkg/apis/core"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// services adds services, whose addresses and node ports are given out by [numbers].
func (k coreKinds) services(pods podstore.PodStorage) error {
	n := &numbers{open: map[*claim]struct{}{}}
	services, status, _, err := servicestore.NewREST(k.storage, api.IPv4Protocol,
		map[api.IPFamily]ipallocator.Interface{api.IPv4Protocol: addresses{n}}, ports{n}, nil, pods.Pod, nil)
	if err != nil {
		return err
	}
	create, update := services.BeginCreate, services.BeginUpdate
	services.BeginCreate = func(ctx context.Context, obj runtime.Object, o *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
		return n.begin(ctx, obj, func() (genericregistry.FinishFunc, error) { return create(ctx, obj, o) })
	}
	services.BeginUpdate = func(ctx context.Context, obj, old runtime.Object, o *metav1.UpdateOptions) (genericregistry.FinishFunc, error) {
		return n.begin(ctx, obj, func() (genericregistry.FinishFunc, error) { return update(ctx, obj, old, o) })
	}
	k.into["services"], k.into["services/status"] = services, status
	return nil
}

// numbers gives out what services of a cluster must not share. It keeps nothing: what is in use
// is read from the services themselves. The number that a service gets depends on its name and
// on what is taken, so that equal runs make equal services, and nearly equal ones do nearly
// always.
//
// The registry does not tell its allocators which cluster a request is for, so one request at a
// time may allocate.
type numbers struct {
	mu   sync.Mutex
	now  *claim              // whose turn it is
	open map[*claim]struct{} // given out, but not yet stored
}

// claim is what one request took.
type claim struct {
	db    *store.DB
	name  string
	taken map[string]bool
	// nameless services get no address.
	nameless bool
}

func (n *numbers) begin(ctx context.Context, obj runtime.Object, begin func() (genericregistry.FinishFunc, error)) (genericregistry.FinishFunc, error) {
	c := &claim{db: store.From(ctx), taken: map[string]bool{}}
	if m, err := meta.Accessor(obj); err == nil {
		c.name, c.nameless = m.GetNamespace()+"/"+m.GetName(), m.GetName() == ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now = c
	if _, err := begin(); err != nil {
		return nil, err
	}
	n.open[c] = struct{}{}
	// What the registry does at the end gives numbers back to allocators that hold none, and
	// logs.
	return func(context.Context, bool) {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.open, c)
	}, nil
}

//arch:state it names a computation; its results are kept in each cluster
var numbersOf = store.NewMemo(func(stored []store.Stored) map[string]bool {
	used := map[string]bool{}
	for _, s := range stored {
		service, ok := decodeStored(s).(*corev1.Service)
		if !ok {
			continue
		}
		for _, ip := range service.Spec.ClusterIPs {
			used[ip] = true
		}
		for _, p := range service.Spec.Ports {
			used[strconv.Itoa(int(p.NodePort))] = true
		}
	}
	return used
}, "/services/specs/")

// has is called while it is somebody's turn.
func (n *numbers) has(number string) bool {
	if n.now.taken[number] || numbersOf.Of(n.now.db)[number] {
		return true
	}
	for c := range n.open {
		if c.db == n.now.db && c.taken[number] {
			return true
		}
	}
	return false
}

// take takes a number if it is free.
func (n *numbers) take(number string) bool {
	if n.has(number) {
		return false
	}
	n.now.taken[number] = true
	return true
}

// next takes the first free number of a range, beginning where the name says.
func (n *numbers) next(size int, number func(i int) string) (int, bool) {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(n.now.name)) // never fails
	start := int(hash.Sum32() % uint32(size))
	for i := range size {
		if at := (start + i) % size; n.take(number(at)) {
			return at, true
		}
	}
	return 0, false
}

// addresses gives out cluster IPs.
type addresses struct{ *numbers }

var _ ipallocator.Interface = addresses{}

// CIDR returns the range of cluster IPs.
func (addresses) CIDR() net.IPNet { return network() }

func network() net.IPNet {
	return net.IPNet{IP: net.IPv4(10, 96, 0, 0).To4(), Mask: net.CIDRMask(16, 32)}
}

// usable tells whether a service may have an address: neither the network's own nor its last
// one.
func usable(ip net.IP) bool {
	cidr := network()
	return cidr.Contains(ip) && ip.String() != address(0) && ip.String() != address(1<<16-1)
}

// Addresses 0 and 65535 are no hosts', and 1 is the API server's.
const firstAddress, hosts = 2, 1<<16 - 3

func address(i int) string {
	ip := binary.BigEndian.AppendUint32(nil, 10<<24|96<<16+uint32(i))
	return net.IP(ip).String()
}

func (a addresses) Allocate(ip net.IP) error {
	if !usable(ip) {
		return ipallocator.ErrMismatchedNetwork
	}
	if a.now.nameless {
		return errNameless(ip)
	}
	if !a.take(ip.String()) {
		return ipallocator.ErrAllocated
	}
	return nil
}

func (a addresses) AllocateNext() (net.IP, error) {
	i, ok := a.next(hosts, func(i int) string { return address(firstAddress + i) })
	if !ok {
		return nil, ipallocator.ErrFull
	}
	ip := net.ParseIP(address(firstAddress + i))
	if a.now.nameless {
		return nil, errNameless(ip)
	}
	return ip, nil
}

// errNameless is how a service without a name is refused: before anybody looks at its name,
// the real allocator makes an IPAddress that refers to it.
func errNameless(ip net.IP) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: networkingv1.GroupName, Kind: "IPAddress"}, ip.String(),
		field.ErrorList{field.Required(field.NewPath("spec", "parentRef", "name"), "")})
}

func (addresses) Release(net.IP) error            { return nil }
func (addresses) ForEach(func(net.IP))            {}
func (addresses) IPFamily() api.IPFamily          { return api.IPv4Protocol }
func (a addresses) Has(ip net.IP) bool            { return a.has(ip.String()) }
func (addresses) Destroy()                        {}
func (addresses) EnableMetrics()                  {}
func (a addresses) DryRun() ipallocator.Interface { return dryAddresses{a} }

// dryAddresses answers requests that are not meant, and like the real allocator takes no
// notice of what is taken.
type dryAddresses struct{ addresses }

func (dryAddresses) Allocate(ip net.IP) error {
	if cidr := network(); !usable(ip) {
		return &ipallocator.ErrNotInRange{IP: ip, ValidRange: cidr.String()}
	}
	return nil
}

func (dryAddresses) AllocateNext() (net.IP, error) { return network().IP, nil }

// ports gives out node ports.
type ports struct{ *numbers }

var _ portallocator.Interface = ports{}

const firstPort, portCount = 30000, 2768

func (p ports) Allocate(port int) error {
	if port < firstPort || port >= firstPort+portCount {
		return &portallocator.ErrNotInRange{ValidPorts: "30000-32767"}
	}
	if !p.take(strconv.Itoa(port)) {
		return portallocator.ErrAllocated
	}
	return nil
}

func (p ports) AllocateNext() (int, error) {
	i, ok := p.next(portCount, func(i int) string { return strconv.Itoa(firstPort + i) })
	if !ok {
		return 0, portallocator.ErrFull
	}
	return firstPort + i, nil
}

func (ports) Release(int) error   { return nil }
func (ports) ForEach(func(int))   {}
func (p ports) Has(port int) bool { return p.has(strconv.Itoa(port)) }
func (ports) Destroy()            {}
func (ports) EnableMetrics()      {}
