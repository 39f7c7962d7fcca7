package natsfake

// refusal is the server's reason not to do something.
type refusal struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

// The server's reasons, as in its errors.json.
var ( //nolint:gochecknoglobals // a constant table
	badRequest       = &refusal{400, 10003, "bad request"}
	consumerNotFound = &refusal{404, 10014, "consumer not found"}
	notEnabled       = &refusal{503, 10039, "JetStream not enabled for account"}
	durableMismatch  = &refusal{400, 10017, "consumer name in subject does not match durable name in request"}
	tooManyConsumers = &refusal{400, 10026, "maximum consumers limit reached"}
	streamMismatch   = &refusal{400, 10056, "stream name in subject does not match request"}
	streamNameInUse  = &refusal{400, 10058, "stream name already in use with a different configuration"}
	streamNotFound   = &refusal{404, 10059, "stream not found"}
	subjectsOverlap  = &refusal{400, 10065, "subjects overlap with an existing stream"}
	replicasAlone    = &refusal{500, 10074, "replicas > 1 not supported in non-clustered mode"}
	backoffTooLong   = &refusal{400, 10116, "max deliver is required to be > length of backoff values"}
	pushMaxWaiting   = &refusal{400, 10080, "consumer in push mode can not set max waiting"}
	filterMismatch   = &refusal{400, 10131, "Consumer create request did not match filtered subject from create subject"}
	twoFilters       = &refusal{400, 10136, "consumer cannot have both FilterSubject and FilterSubjects specified"}
	consumerExists   = &refusal{400, 10148, "consumer already exists"}
	consumerGone     = &refusal{400, 10149, "consumer does not exist"}
)

func invalidStream(why string) *refusal   { return &refusal{500, 10052, why} }
func invalidConsumer(why string) *refusal { return &refusal{500, 10012, why} }
