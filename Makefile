# Run make without a target to see this list.

GO      ?= go
MODULES := . test devcluster kubesim
# Race detection needs a C compiler; without one Go itself says CGO_ENABLED=0.
RACE    := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)
TIMEOUT ?= 30m
CORES   := $(shell getconf _NPROCESSORS_ONLN)
# How many tests of a package run at a time: more than cores, because most of them wait for an API server much of the time.
PARALLEL ?= $(shell expr 3 '*' $(CORES))
SCHEDULES ?= 500000
# A number above 0 plays a random sample of SCHEDULES, each number another one.
SEED    ?= 0
# What links Kubernetes is tested without -race: a race build of it takes many minutes.
HEAVY   := ./devcluster/... ./kubesim/... ./test/fault/... ./test/fidelity/... ./test/crash/... ./test/hours/...
# Models and tables that one goroutine walks are tested without -race. The packages that use them run them under it.
MODELS  := ./external/internal/engine ./external/internal/decide ./graph ./health/... ./api/... ./component/internal/desired ./component/internal/projection
# In other modules than the project's own: what plays operators in memory, and what measures and kills programs. What they read of
# another module is linked into their testdata, because go test knows no files but those of the module.
PLAYED  := ./kubesim/... ./test/hours/... ./test/fault/... ./test/fidelity/...
WATCHED := ./devcluster/... ./test/crash/... ./test/beside/... ./test/budget/... ./test/devcluster/...
# Commands: their tests wait for go build, processes and a control plane. Code that runs in several goroutines is in packages that
# are tested under -race, such as cmd/trimtab/internal/dev.
LINEAR  := ./cmd/trimtab ./cmd/trimtab/internal/cli
# Most tests of these wait for a control plane, and cost three and a half times the processor time with -race. Those that are
# about several goroutines are tested with it, and all others without, as those of the generator of charts. make deep tests
# all with it. Those in APART want a control plane of their own.
APART   := ./component ./generator/helm
BIG     := ./external $(APART)
RACED   := ^Test(AbandonedCall|LateCall|CallThatDoesNotReturn|ManyAtATime|Lifecycle|WatchesEnd|Lookup|NodeIsQuiet|NodeMoves|Remote|Handover|Shards|BackAgain|CallsThatDoNotReturn|ClientThat.*|ClientOfAScope.*|Connect.*|Scope.*|ThrottledForA.*|Life|Restarts|Rotation|Provider.*|Installations)$$
# Nothing in these runs beside something else in the same process.
OTHERS  := ./test/beside/... ./test/browser/... ./test/budget/... ./test/devcluster/... ./test/docs/...
# The server of NATS has a data race of its own when its users are changed, so this is tested without -race.
NATS    := ./samples/nats/...
# What tests on one control plane: each test has its own namespace, and none changes how the server answers others. Those of the
# other packages define policies, APIs that do not answer, or kinds that they delete, or want a server with options of their own.
SHARED  := ./loop/... ./children/... ./patch/... ./trace/spans ./external/verify/... ./external/simcloud/... ./component/componenttest \
	./internal/fingerprint/... ./internal/kindcache/... ./cmd/trimtab/internal/model ./samples/cloud/... ./samples/folder/... \
	./samples/guestbook/... ./samples/webpage/...
# make verify vets as well, with more analyzers. Tests use all cores, whatever GOMAXPROCS says.
RUN      = $(GO) test -json -vet=off -cpu=$(CORES) -timeout=$(TIMEOUT)
TEST     = $(RUN) -shuffle=on
# Without -shuffle, go test does not run again what passed, as long as all that it depends on is the same. That is right where go test
# knows all of that; internal/kept tells. It does not know what stands behind a path or an address that somebody else chose. make deep
# runs and shuffles all.
KEEPS    = $(if $(TRIMTAB_DEVCLUSTER)$(KUBEBUILDER_ASSETS)$(TRIMTAB_TEST_KUBECONFIG),$(TEST),$(RUN))
LIGHT   := ./... $(OTHERS)
# Public operators, each in a module of its own. One of them is in make test.
WILD    := $(patsubst %/go.mod,%,$(wildcard test/wild/go.mod test/wild/*/go.mod))
# The path of the pinned linter, built on first use. -modfile does not go with a workspace,
# but the linter itself has to see it.
LINT     = $$(GOWORK=off $(GO) tool -modfile=go.tools.mod -n golangci-lint)

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

.PHONY: demo
demo: ## one real operator at work, from nothing but Go
	$(GO) run ./cmd/trimtab demo

# A collection of garbage at four times the live heap instead of twice costs memory, and saves about a tenth of the processor time of
# control planes and tests. The control planes and programs that tests start have one processor each, and the go command as many
# compilers as there are cores: a control plane starts with two thirds of the processor time then, and costs half of it at rest.
# Without -linkmode=internal and -s -w, a program that has package plugin in it, as kustomize does, needs the C linker and more than
# twice the time; the tests link about 180 programs.
.PHONY: test
test: export GOGC := $(or $(GOGC),300)
test: export GOMAXPROCS := 1
test: export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -p=$(CORES) '-ldflags=-linkmode=internal -s -w')
test: ## the whole suite; much of it with -race where a C compiler is present
	TRIMTAB_DEVCLUSTER="$$($(GO) run ./cmd/trimtab cluster build)" && export TRIMTAB_DEVCLUSTER && \
	$(GO) run ./internal/kept -all $(BIG) $(NATS) $(SHARED) $(MODELS) $(PLAYED) $(WATCHED) $(LINEAR) && kept="$$($(GO) run ./internal/kept ./...)" && \
	others="$$($(GO) list $(BIG) $(NATS) $(SHARED) $(MODELS) $(LINEAR))" && \
	$(GO) run ./internal/suite \
		$(TEST) -parallel=$(CORES) $(filter-out $(WATCHED),$(OTHERS)) -- \
		$(KEEPS) -parallel=$(CORES) $(WATCHED) -- \
		$(KEEPS) -parallel=$(PARALLEL) -skip '$(RACED)' $(APART) -- \
		$(KEEPS) -parallel=$(PARALLEL) $(LINEAR) -- \
		$(KEEPS) -parallel=$(CORES) $(PLAYED) $(MODELS) -- \
		$(TEST) -parallel=$(PARALLEL) $(RACE) $$($(GO) list ./... | grep -vxF "$$others" | grep -vxF "$$kept") -- \
		shared $(KEEPS) -parallel=$(PARALLEL) $(RACE) $(SHARED) -- \
		shared $(KEEPS) -parallel=$(PARALLEL) $(NATS) -- \
		shared $(KEEPS) -parallel=$(PARALLEL) -skip '$(RACED)' ./external -- \
		shared $(KEEPS) -parallel=$(PARALLEL) $(RACE) -run '$(RACED)' ./external -- \
		$(KEEPS) -parallel=$(PARALLEL) $(RACE) -run '$(RACED)' ./component -- \
		$(KEEPS) -parallel=$(PARALLEL) $(RACE) $$(echo "$$kept" | grep -vxF "$$others") -- \
		env GOWORK=off $(GO) -C test/charts test -json -count=1 -cpu=$(CORES) -timeout=$(TIMEOUT) -parallel=$(CORES) ./... -- \
		env GOWORK=off $(GO) -C test/wild/trustmanager test -json -cpu=$(CORES) -timeout=$(TIMEOUT) -parallel=$(CORES) ./...

# The control plane that tests start.
.PHONY: cluster
cluster: ## build the control plane; minutes on first use, then cached
	$(GO) run ./cmd/trimtab cluster build

.PHONY: check
check: ## before a commit: compile, vet, lint and test what changed
	$(GO) run ./internal/check

.PHONY: gen
gen: ## deep copies, CRDs, code shown in documents, api.txt of packages
	$(GO) run ./internal/gen

.PHONY: verify
verify: tidy ## go.mod files tidy, generated files current, lint
	$(GO) run ./internal/gen -check
	@$(MAKE) --no-print-directory lint

.PHONY: tidy
tidy: ## fail if a go.mod or go.sum is not tidy
	@for m in $(MODULES); do echo "go mod tidy -diff in $$m"; \
		(cd $$m && GOWORK=off $(GO) mod tidy -diff) || exit 1; done

.PHONY: docs
docs: ## the documents as a site in dist/site; fails if a link leads nowhere
	rm -rf dist/site
	$(GO) run ./internal/site -o dist/site

# For some platforms only: make release VERSION=v0.1.0 PLATFORMS=linux/amd64
.PHONY: release
release: ## the files of release VERSION in the folder dist; publishes nothing
	$(GO) run ./internal/release -version "$(VERSION)" -platforms "$(PLATFORMS)"

# The control plane comes first: linting what links Kubernetes needs its packages compiled,
# and only that build shows its progress. exhaustive and staticcheck read the source of every
# dependency; for Kubernetes that takes 7 GB, without them 3. trimtab lint would look at all
# dependencies again after each change of trimtab; its tool with nothing but the analyzers does not.
.PHONY: lint
lint: cluster ## linters and formatters over all modules
	$(LINT) run $(LIGHT)
	$(LINT) run --disable exhaustive,staticcheck $(HEAVY)
	$(GO) build -trimpath -buildvcs=false -o bin/vettool ./lint/testdata/vettool
	$(GO) vet -vettool=bin/vettool ./...
	$(GO) run ./cmd/trimtab lint --crds samples ./cmd/trimtab/testdata/clean

.PHONY: format
format: ## write what the formatters want
	$(LINT) fmt

.PHONY: deep
deep: cluster ## the long forms of tests
	TRIMTAB_DEEP=1 $(GO) test -shuffle=on -timeout=2h $(HEAVY) $(MODELS) ./component
	TRIMTAB_DEEP=1 $(GO) test $(RACE) -shuffle=on -timeout=2h $(LIGHT)
	TRIMTAB_SCHEDULES=$(SCHEDULES) TRIMTAB_SEED=$(SEED) $(GO) test -run '^TestDeep$$' -v -timeout=24h ./test/fault
	$(GO) test $(RACE) -timeout=1h ./kubesim/...
	@$(MAKE) --no-print-directory wild

.PHONY: wild
wild: ## public operators under faults
	@for m in $(WILD); do echo "go test in $$m"; (cd $$m && export GOWORK=off && \
		$(GO) mod tidy -diff && $(GO) vet ./... && $(GO) test -timeout=1h ./...) || exit 1; done
