package fault

type process struct{}
