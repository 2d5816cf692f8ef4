package rls

import (
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// metadata is the dynamic metadata of an answer: the request, and under
// "metadata" what the rules of the descriptors that passed say, merged in
// request order. The first value of a name wins; maps are merged level by
// level, lists are not.
//
// Every value is built anew. The rules are shared by all requests, and an
// answer that shared memory with them would carry one rule's metadata into
// the answers of others.
func (c *call) metadata(req *rlsv3.RateLimitRequest, response *rlsv3.RateLimitResponse) *structpb.Struct {
	fields := map[string]*structpb.Value{
		"domain":      structpb.NewStringValue(req.GetDomain()),
		"descriptors": describeDescriptors(req),
	}
	if hits := req.GetHitsAddend(); hits != 0 {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(hits))
	}
	merged := make(map[string]*structpb.Value)
	for i, status := range response.GetStatuses() {
		it := &c.items[i]
		if it.outcome == outcomeCharged && it.rule != nil && status.GetCode() == codeOK {
			mergeMetadata(merged, it.rule.Metadata)
		}
	}
	if len(merged) > 0 {
		fields["metadata"] = structpb.NewStructValue(&structpb.Struct{Fields: merged})
	}
	return &structpb.Struct{Fields: fields}
}

func describeDescriptors(req *rlsv3.RateLimitRequest) *structpb.Value {
	list := make([]*structpb.Value, len(req.GetDescriptors()))
	for i, d := range req.GetDescriptors() {
		entries := make([]*structpb.Value, len(d.GetEntries()))
		for j, e := range d.GetEntries() {
			entries[j] = structpb.NewStringValue(e.GetKey() + "=" + e.GetValue())
		}
		fields := map[string]*structpb.Value{
			"entries": structpb.NewListValue(&structpb.ListValue{Values: entries}),
		}
		if limit := d.GetLimit(); limit != nil {
			fields["limit"] = structpb.NewStringValue(overrideText(limit))
		}
		if hits := d.GetHitsAddend(); hits != nil {
			fields["hitsAddend"] = structpb.NewNumberValue(float64(hits.GetValue()))
		}
		list[i] = structpb.NewStructValue(&structpb.Struct{Fields: fields})
	}
	return structpb.NewListValue(&structpb.ListValue{Values: list})
}

// mergeMetadata adds to dst what it does not have yet.
func mergeMetadata(dst map[string]*structpb.Value, src map[string]any) {
	for name, value := range src {
		there, ok := dst[name]
		if !ok {
			dst[name] = freshValue(value)
			continue
		}
		inner, isMap := value.(map[string]any)
		if s := there.GetStructValue(); s != nil && isMap {
			mergeMetadata(s.Fields, inner)
		}
	}
}

// freshValue copies a plain value of a rule into protobuf.
func freshValue(v any) *structpb.Value {
	switch v := v.(type) {
	case string:
		return structpb.NewStringValue(v)
	case float64:
		return structpb.NewNumberValue(v)
	case bool:
		return structpb.NewBoolValue(v)
	case []any:
		list := make([]*structpb.Value, len(v))
		for i := range v {
			list[i] = freshValue(v[i])
		}
		return structpb.NewListValue(&structpb.ListValue{Values: list})
	case map[string]any:
		fields := make(map[string]*structpb.Value, len(v))
		mergeMetadata(fields, v)
		return structpb.NewStructValue(&structpb.Struct{Fields: fields})
	default:
		return structpb.NewNullValue()
	}
}
