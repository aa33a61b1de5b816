import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** JSON as the protocol has it: UTF-8, one value, and no key twice in an object. */
final class Json {
  private static final JsonMapper MAPPER =
      JsonMapper.builder()
          .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .build();

  private Json() {}

  /** The value that a content holds; null where it holds none. */
  static JsonNode parse(byte[] content) {
    if (content == null) return null;
    try {
      JsonNode found = MAPPER.readTree(content);
      return found == null || found.isMissingNode() ? null : found;
    } catch (IOException malformed) {
      return null;
    }
  }

  static JsonNode parse(String line) throws JsonProcessingException {
    return MAPPER.readTree(line);
  }

  static byte[] bytes(JsonNode value) {
    try {
      return MAPPER.writeValueAsBytes(value);
    } catch (JsonProcessingException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  static ObjectNode object() {
    return JsonNodeFactory.instance.objectNode();
  }

  static ArrayNode list(List<Integer> replicas) {
    ArrayNode made = JsonNodeFactory.instance.arrayNode();
    replicas.forEach(made::add);
    return made;
  }

  /** The broker ids that a value lists; null where it is anything else. */
  static List<Integer> replicas(JsonNode value) {
    if (value == null || !value.isArray()) return null;
    List<Integer> found = new ArrayList<>();
    for (JsonNode each : value) {
      if (!each.isInt()) return null;
      found.add(each.intValue());
    }
    return found;
  }

  /** Whether a value is an object of version 1. */
  static boolean isVersionOne(JsonNode value) {
    return value != null
        && value.isObject()
        && value.path("version").isInt()
        && value.path("version").intValue() == 1;
  }
}
