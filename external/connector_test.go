package external_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// bank is clouds by account, and the connector to them.
type bank struct {
	mu     sync.Mutex
	clouds map[string]*cloud
	// made lists the accounts for which a client was made.
	made []string
	// endpoint replaces what the connector says; nil leaves it.
	endpoint func(account string) string
	// panics in the method of that name.
	panics string
	// let ends what hangs in Scope; nil hangs nowhere.
	let chan struct{}
}

func newBank(t *testing.T, names ...string) *bank {
	t.Helper()
	a := &bank{clouds: map[string]*cloud{}}
	for _, name := range names {
		a.clouds[name] = newCloud(t)
	}
	return a
}

func (a *bank) enters(method string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.panics == method {
		panic("nil map")
	}
}

func (a *bank) breaks(method string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.panics = method
}

func (a *bank) connects() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.made)
}

func (a *bank) Scope(t *thing.Thing) (string, error) {
	a.enters("Scope")
	if a.let != nil {
		<-a.let
	}
	if a.clouds[t.Spec.Account] == nil {
		return "", fmt.Errorf("there is no account %q; set spec.account to another one", t.Spec.Account)
	}
	return t.Spec.Account, nil
}

func (a *bank) Connect(_ context.Context, r external.ConnectRequest[*thing.Thing]) (external.ConnectResponse[*cloudClient], error) {
	a.enters("Connect")
	if got := r.Object.Spec.Account; got != r.Scope {
		return external.ConnectResponse[*cloudClient]{}, fmt.Errorf("an object of account %q, want %q", got, r.Scope)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.made = append(a.made, r.Scope)
	endpoint := r.Scope
	if a.endpoint != nil {
		endpoint = a.endpoint(r.Scope)
	}
	client := &cloudClient{base: a.clouds[r.Scope].URL, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	return external.ConnectResponse[*cloudClient]{Client: client, Endpoint: endpoint}, nil
}

// in puts a new object into an account.
func in(account string) func(*thing.Thing) { return func(t *thing.Thing) { t.Spec.Account = account } }

// newBankTest starts an operator of things in accounts.
func newBankTest(t *testing.T, a *bank, change ...func(*options)) *operatorTest {
	t.Helper()
	return newOperatorTest(t, named{}, append([]func(*options){func(o *options) { o.Connect, o.Connector = nil, a }}, change...)...)
}

// readyAs waits for an object to be Ready.
func (w *operatorTest) readyAs(name string) *thing.Thing {
	w.t.Helper()
	return w.awaitAs(name, "Ready", func(o *thing.Thing) bool { return is(o, "Ready", "True") })
}

// TestConnector: each object gets the client of its scope, and those of one scope share it.
func TestConnector(t *testing.T) {
	t.Parallel()
	a := newBank(t, "east", "west")
	w := newBankTest(t, a)
	w.create(in("east"))
	w.createAs("b", in("west"))
	w.createAs("c", in("east"))
	for _, name := range []string{"a", "b", "c"} {
		w.readyAs(name)
	}
	wantWrites(t, w, "the endpoint costs no write", "patch", "apply status")
	w.resize(2)
	w.ready()
	w.delete()
	w.gone()
	made := a.connects()
	slices.Sort(made)
	if diff := cmp.Diff([]string{"east", "west"}, made); diff != "" {
		t.Errorf("clients made (-want +got):\n%s", diff)
	}
	east, west := a.clouds["east"], a.clouds["west"]
	if east.get("a") != nil || east.get("b") != nil || east.get("c") == nil || west.get("a") != nil || west.get("b") == nil || west.get("c") != nil {
		t.Errorf("east had %v, west had %v", east.calls(false), west.calls(false))
	}
}

// TestScopesDoNotHoldEachOtherUp: one account throttles, or is away, and the other one goes on.
func TestScopesDoNotHoldEachOtherUp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		bad    answer
		reason string
	}{
		"throttled": {answer{code: http.StatusTooManyRequests, after: "60"}, "Throttled"},
		"away":      {answer{code: http.StatusServiceUnavailable}, "ObserveFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newBank(t, "east", "west")
			w := newBankTest(t, a)
			a.clouds["east"].faulty(func(string, string) *answer { return &test.bad })
			for i := range 5 {
				w.createAs(fmt.Sprintf("e%d", i), in("east"))
			}
			for i := range 5 {
				w.awaitAs(fmt.Sprintf("e%d", i), test.reason, func(o *thing.Thing) bool { return condition(o, "Ready").Reason == test.reason })
			}
			for i := range 5 {
				w.createAs(fmt.Sprintf("w%d", i), in("west"))
			}
			for i := range 5 {
				w.readyAs(fmt.Sprintf("w%d", i))
			}
			if n := a.clouds["east"].count(http.MethodPost); n != 0 {
				t.Errorf("%d creates in the account that refuses", n)
			}
			if test.reason == "Throttled" {
				return
			}
			a.clouds["east"].faulty(nil)
			for i := range 5 {
				w.readyAs(fmt.Sprintf("e%d", i))
			}
		})
	}
}

// TestScopeChanges: an object uses the client of the scope that it has now.
func TestScopeChanges(t *testing.T) {
	t.Parallel()
	t.Run("to another endpoint: nothing is touched, made or left", func(t *testing.T) {
		t.Parallel()
		a := newBank(t, "east", "west")
		w := newBankTest(t, a)
		w.create(in("east"))
		w.ready()
		w.change("a", in("west"))
		w.says("EndpointChanged", `"a" was created at east, but the operator now connects to west`)
		if calls := a.clouds["west"].calls(false); len(calls) > 0 {
			t.Errorf("calls of the other account: %v", calls)
		}
		w.change("a", in("east"))
		w.ready()
		w.resize(3)
		w.ready()
		w.delete()
		w.gone()
		if a.clouds["east"].get("a") != nil {
			t.Error("the thing is still there")
		}
	})
	t.Run("to another endpoint, as the user says, a moment after the API returned the state", func(t *testing.T) {
		t.Parallel()
		for name, then := range map[string]func(*operatorTest){
			"update": func(w *operatorTest) {
				w.patch(`{"metadata":{"annotations":{"trimtab.dev/endpoint":"west"}},"spec":{"account":"west","size":2}}`)
				w.failing("NotOurs")
			},
			"delete": func(w *operatorTest) {
				w.patch(`{"metadata":{"annotations":{"trimtab.dev/endpoint":"west"}},"spec":{"account":"nowhere"}}`)
				w.says("ConnectFailed", "nowhere")
				w.delete()
				w.patch(`{"spec":{"account":"west"}}`)
				w.gone()
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				a := newBank(t, "east", "west")
				w := newOperatorTest(t, answering{}, func(o *options) { o.Connect, o.Connector, o.CallDeadline = nil, a, time.Minute })
				w.create(in("east"))
				w.ready()
				a.clouds["west"].put("a", item{Size: 7, State: "ONLINE"}) // somebody else's
				then(w)
				if calls := a.clouds["west"].calls(false); len(calls) > 0 {
					t.Errorf("calls that change what is another's: %v", calls)
				}
			})
		}
	})
	t.Run("to the same endpoint by other credentials", func(t *testing.T) {
		t.Parallel()
		a := newBank(t, "old", "new")
		a.clouds["new"].Config.Handler = a.clouds["old"].Config.Handler // one cloud with two doors
		a.endpoint = func(string) string { return "the account" }
		w := newBankTest(t, a)
		w.create(in("old"))
		w.ready()
		if diff := cmp.Diff([]string{"old"}, a.connects()); diff != "" {
			t.Errorf("clients made (-want +got):\n%s", diff)
		}
		w.change("a", in("new"))
		w.resize(2)
		w.ready()
		if diff := cmp.Diff([]string{"old", "new"}, a.connects()); diff != "" {
			t.Errorf("clients made (-want +got):\n%s", diff)
		}
		if got := a.clouds["old"].get("a"); got == nil || got.Size != 2 {
			t.Errorf("the thing is %+v", got)
		}
	})
}

// TestScopeUnknown: the status of an object without a scope says so, and what to do.
func TestScopeUnknown(t *testing.T) {
	t.Parallel()
	a := newBank(t, "east")
	w := newBankTest(t, a)
	w.create(in("esat"))
	want := `cannot connect to the external API: there is no account "esat"; set spec.account to another one; retrying`
	w.await("the reason", func(o *thing.Thing) bool {
		return o.Status.Message == want && o.Status.State == "Pending" && condition(o, "Failed").Reason == "ConnectFailed"
	})
	w.change("a", in("east"))
	w.ready()
	w.change("a", in("esat"))
	w.delete()
	w.await("that it is kept", func(o *thing.Thing) bool { return o.Status.Message == want && o.Status.State == "Terminating" })
	w.change("a", in("east"))
	w.gone()
	if a.clouds["east"].get("a") != nil {
		t.Error("the thing is still there")
	}
	if diff := cmp.Diff([]string{"east"}, a.connects()); diff != "" {
		t.Errorf("clients made (-want +got):\n%s", diff)
	}
}

// TestConnectorPanics: it is an error of the object, and the operator goes on.
func TestConnectorPanics(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Scope", "Connect"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			a := newBank(t, "east")
			a.breaks(method)
			w := newBankTest(t, a)
			w.create(in("east"))
			w.says("ConnectFailed", "the driver panicked in "+method+": nil map")
			a.breaks("")
			w.ready()
		})
	}
}

// TestScopeThatHangs: nothing is called for the object before Scope returns.
func TestScopeThatHangs(t *testing.T) {
	t.Parallel()
	a := newBank(t, "east")
	a.let = make(chan struct{})
	let := sync.OnceFunc(func() { close(a.let) })
	defer let()
	w := newBankTest(t, a)
	w.create(in("east"))
	w.says("CallHangs", "the driver has not returned from Scope after its deadline")
	if made := a.connects(); len(made) > 0 {
		t.Errorf("clients made: %v", made)
	}
	let()
	w.ready()
}

// TestClientOfAScopeIsReplaced: one account refuses its client, and the client of the other one
// stays.
func TestClientOfAScopeIsReplaced(t *testing.T) {
	t.Parallel()
	a := newBank(t, "east", "west")
	w := newBankTest(t, a)
	w.createAs("b", in("west"))
	w.readyAs("b")
	a.clouds["east"].faulty(func(string, string) *answer {
		if len(a.connects()) > 2 {
			return nil
		}
		return &answer{code: http.StatusUnauthorized}
	})
	w.create(in("east"))
	w.ready()
	if diff := cmp.Diff([]string{"west", "east", "east"}, a.connects()); diff != "" {
		t.Errorf("clients made (-want +got):\n%s", diff)
	}
}

// TestConnectorWithoutEndpoint: nothing is made where nobody could say later where that was.
func TestConnectorWithoutEndpoint(t *testing.T) {
	t.Parallel()
	a := newBank(t, "east")
	a.endpoint = func(string) string { return "" }
	w := newBankTest(t, a)
	w.create(in("east"))
	w.says("ConnectFailed", "the driver's Connect returns no endpoint; it must name what the client talks to")
	if calls := a.clouds["east"].calls(true); len(calls) > 0 {
		t.Errorf("calls %v", calls)
	}
}

// TestConnectOrConnector: exactly one of them makes clients.
func TestConnectOrConnector(t *testing.T) {
	connect := func(context.Context) (*cloudClient, error) { return nil, errors.New("never called") }
	endpoint := func(context.Context, *cloudClient) (string, error) { return "", nil }
	for why, test := range map[string]struct {
		options options
		want    string
	}{
		"none":                  {options{}, "New needs Options.Connect"},
		"both":                  {options{Connect: connect, Connector: &bank{}}, "Options.Connect and Options.Connector exclude each other"},
		"endpoint by an option": {options{Endpoint: endpoint, Connector: &bank{}}, "return ConnectResponse.Endpoint instead"},
	} {
		t.Run(why, func(t *testing.T) {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, test.want) {
					t.Errorf("New says %q, want %q", said, test.want)
				}
			}()
			external.New(named{}, test.options)
		})
	}
}

// answering is a driver that passes on what its API returns with its answers.
type answering struct{ named }

func (answering) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	i := item{Size: r.Object.Spec.Size, Tags: r.Mark}
	var made item
	if err := r.Client.call(ctx, http.MethodPost, r.ID, &i, &made); err != nil {
		return external.CreateResponse[item]{}, err
	}
	o := external.Available(made, external.MarkOf(made.Tags))
	return external.CreateResponse[item]{Observed: &o}, nil
}
