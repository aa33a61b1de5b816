import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** What ZooKeeper holds of a cluster, read at one go. Whatever changes of it wakes the watcher. */
final class Tree {
  static final int NO_LEADER = -1;
  static final String CONTROLLER = "/controller";
  static final String EPOCH = "/controller_epoch";
  static final String BROKERS = "/brokers/ids";
  static final String TOPICS = "/brokers/topics";
  static final String KNOWN = "/config/brokers";
  static final String SETTINGS = "/config/topics";
  static final String QUEUE = "/admin/reassignment_requests";
  static final String RECORDS = "/admin/reassignments";
  static final String OLD = "/admin/reassign_partitions";

  /** A partition, by topic and number. */
  record Key(String topic, int number) {
    String state() {
      return TOPICS + "/" + topic + "/partitions/" + number + "/state";
    }

    String record() {
      return RECORDS + "/" + topic + "/" + number;
    }
  }

  /** A znode's content and version, and which life of it this is. */
  record Found(byte[] content, int version, long born, long owner) {}

  /** Leader and in-sync set. */
  record State(int leader, int epoch, List<Integer> isr, int version) {
    byte[] encode(int controllerEpoch) {
      ObjectNode made = Json.object().put("version", 1).put("leader", leader);
      made.put("leader_epoch", epoch).put("controller_epoch", controllerEpoch);
      return Json.bytes(made.set("isr", Json.list(isr)));
    }
  }

  /** A reassignment in flight. */
  record Flight(int top, List<Integer> target, boolean legacy, int version) {
    byte[] encode() {
      ObjectNode made = Json.object().put("version", 1).put("top", top);
      made.set("assignment", Json.list(target));
      return Json.bytes(made.put("legacy", legacy));
    }
  }

  /** One partition: who is assigned, its state and its reassignment, null where it has none. */
  record Partition(
      Key key, List<Integer> assigned, Found topic, State state, Flight flight, List<String> lacking) {

    /** The topic's content with these replicas in the place of those, and all else as it was. */
    byte[] withAssigned(List<Integer> replicas) {
      JsonNode content = Json.parse(topic.content());
      ((ObjectNode) content.path("partitions"))
          .set(String.valueOf(key.number()), Json.list(replicas));
      return Json.bytes(content);
    }
  }

  final Found acting;
  final Found epoch;
  final Map<Integer, Long> live = new TreeMap<>();
  final Set<Integer> known = new HashSet<>();
  final Map<Key, Partition> partitions = new LinkedHashMap<>();
  /** Paths below the records that hold none, with how many stand beside each. */
  final Map<String, Integer> foreign = new TreeMap<>();
  final Map<String, Integer> recordsOf = new HashMap<>();
  final List<String> queue;
  final Found old;

  private final ZooKeeper zookeeper;
  private final Watcher watcher;

  Tree(ZooKeeper zookeeper, Watcher watcher) throws KeeperException, InterruptedException {
    this.zookeeper = zookeeper;
    this.watcher = watcher;
    acting = read(CONTROLLER);
    epoch = read(EPOCH);
    for (String id : list(BROKERS)) {
      Found broker = read(BROKERS + "/" + id);
      if (broker != null) live.put(Integer.valueOf(id), broker.born());
    }
    for (String id : list(KNOWN)) if (id.matches("\\d+")) known.add(Integer.valueOf(id));
    known.addAll(live.keySet());
    Map<Key, Flight> flights = readFlights();
    for (String topic : list(TOPICS)) readTopic(topic, flights);
    flights.keySet().stream()
        .filter(key -> !partitions.containsKey(key))
        .forEach(key -> foreign.put(key.record(), recordsOf.get(key.topic())));
    queue = list(QUEUE);
    old = read(OLD);
  }

  Found read(String path) throws KeeperException, InterruptedException {
    return read(path, watcher);
  }

  private Found read(String path, Watcher watcher) throws KeeperException, InterruptedException {
    while (true) {
      try {
        Stat stat = new Stat();
        byte[] content = zookeeper.getData(path, watcher, stat);
        return new Found(content, stat.getVersion(), stat.getCzxid(), stat.getEphemeralOwner());
      } catch (KeeperException.NoNodeException absent) {
        // What is not there is watched by another call; it may have come in between.
        if (zookeeper.exists(path, watcher) == null) return null;
      }
    }
  }

  /**
   * A znode as `read` has it, without its content where that is longer than this: the client loses
   * its connection over an answer that is too long.
   */
  Found readUpTo(int bytes, String path) throws KeeperException, InterruptedException {
    Stat stat = zookeeper.exists(path, watcher);
    if (stat == null || stat.getDataLength() <= bytes) return stat == null ? null : read(path);
    return new Found(null, stat.getVersion(), stat.getCzxid(), stat.getEphemeralOwner());
  }

  private List<String> list(String path) throws KeeperException, InterruptedException {
    try {
      List<String> found = new ArrayList<>(zookeeper.getChildren(path, watcher));
      Collections.sort(found);
      return found;
    } catch (KeeperException.NoNodeException absent) {
      return List.of();
    }
  }

  private Map<Key, Flight> readFlights() throws KeeperException, InterruptedException {
    Map<Key, Flight> flights = new LinkedHashMap<>();
    for (String topic : list(RECORDS)) {
      List<String> names = list(RECORDS + "/" + topic);
      recordsOf.put(topic, names.size());
      for (String name : names) {
        String path = RECORDS + "/" + topic + "/" + name;
        // Controllers alone write records: a watch on each would be one for every reassignment.
        Found found = read(path, null);
        Flight flight = found == null ? null : parseFlight(found);
        if (flight != null && name.matches("0|[1-9]\\d{0,8}")) {
          flights.put(new Key(topic, Integer.parseInt(name)), flight);
        } else if (found != null) {
          foreign.put(path, names.size());
        }
      }
    }
    return flights;
  }

  private static Flight parseFlight(Found found) {
    JsonNode content = Json.parse(found.content());
    if (!Json.isVersionOne(content) || !content.path("top").isInt()) return null;
    List<Integer> target = Json.replicas(content.get("assignment"));
    boolean legacy = content.path("legacy").asBoolean(false);
    int top = content.path("top").intValue();
    return target == null ? null : new Flight(top, target, legacy, found.version());
  }

  private void readTopic(String topic, Map<Key, Flight> flights)
      throws KeeperException, InterruptedException {
    String path = TOPICS + "/" + topic;
    Found found = read(path);
    JsonNode content = found == null ? null : Json.parse(found.content());
    if (content == null) return;
    List<String> there = list(path + "/partitions");
    var each = content.path("partitions").properties().iterator();
    while (each.hasNext()) {
      var named = each.next();
      Key key = new Key(topic, Integer.parseInt(named.getKey()));
      Found state = read(key.state());
      List<String> lacking = new ArrayList<>();
      if (there.isEmpty()) lacking.add(path + "/partitions");
      if (!there.contains(named.getKey())) lacking.add(path + "/partitions/" + named.getKey());
      List<Integer> assigned = Json.replicas(named.getValue());
      State known = state == null ? null : parseState(state);
      partitions.put(key, new Partition(key, assigned, found, known, flights.get(key), lacking));
    }
  }

  static State parseState(Found found) {
    JsonNode content = Json.parse(found.content());
    return new State(
        content.path("leader").intValue(),
        content.path("leader_epoch").intValue(),
        Json.replicas(content.path("isr")),
        found.version());
  }

  /** The least number of replicas in sync that a topic asks for. */
  int minimum(String topic) throws KeeperException, InterruptedException {
    for (String path : List.of(SETTINGS + "/" + topic, KNOWN + "/<default>")) {
      Found found = read(path);
      JsonNode content = found == null ? null : Json.parse(found.content());
      JsonNode said = content == null ? null : content.at("/config/min.insync.replicas");
      if (said != null && said.isTextual()) return Integer.parseInt(said.textValue());
    }
    return 1;
  }
}
