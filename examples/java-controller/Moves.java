import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;

/** Requests, the steps of reassignments, and the old znode: what one controller does in its term. */
final class Moves {
  private static final int MAX_BYTES = 1024 * 1024;

  private enum Stage {
    LEADER_TOLD,
    OLD_STOPPED
  }

  private final int epoch;
  private boolean inOffice = false;
  private final Set<Tree.Key> dropDue = new HashSet<>();
  private final Set<Tree.Key> announced = new HashSet<>();
  private final Map<Tree.Key, Stage> completing = new HashMap<>();
  /** The life of the old znode that has been translated, 0 for none. */
  private long translated = 0;

  Moves(int epoch) {
    this.epoch = epoch;
  }

  /** Finds, once, where the last controller left a drop undone: nothing says so but the assignment. */
  void takeOffice(Tree tree) {
    if (inOffice) return;
    inOffice = true;
    for (Tree.Partition each : tree.partitions.values()) {
      Tree.Flight flight = each.flight();
      if (flight == null || each.assigned().size() <= flight.top()) continue;
      boolean unexpanded = !each.assigned().containsAll(flight.target());
      if (unexpanded || each.assigned().size() > flight.top() + flight.target().size()) {
        dropDue.add(each.key());
      }
    }
  }

  // -- requests

  /** What a request asks for. */
  private record Request(Map<Tree.Key, List<Integer>> targets, boolean legacy) {}

  private static Request parse(String name, byte[] content) {
    if (!name.matches("request_\\d{10}")) return null;
    JsonNode asked = Json.parse(content);
    if (!Json.isVersionOne(asked) || !asked.path("assignments").isObject()) return null;
    JsonNode legacy = asked.get("legacy");
    int keys = legacy == null ? 2 : 3;
    if (asked.size() != keys || (legacy != null && !legacy.isBoolean())) return null;
    Map<Tree.Key, List<Integer>> targets = new LinkedHashMap<>();
    var topics = asked.path("assignments").properties().iterator();
    while (topics.hasNext()) {
      var topic = topics.next();
      if (!topic.getValue().isObject()) return null;
      var partitions = topic.getValue().properties().iterator();
      while (partitions.hasNext()) {
        var partition = partitions.next();
        List<Integer> target = Json.replicas(partition.getValue());
        if (target == null || !partition.getKey().matches("0|[1-9]\\d{0,8}")) return null;
        targets.put(new Tree.Key(topic.getKey(), Integer.parseInt(partition.getKey())), target);
      }
    }
    return new Request(targets, legacy != null && legacy.booleanValue());
  }

  /** Takes up the first request: all its records in one transaction; when none is due it goes. */
  Controller.Due takeUp(Tree tree) throws KeeperException, InterruptedException {
    if (tree.queue.isEmpty()) return null;
    String name = tree.queue.get(0);
    String path = Tree.QUEUE + "/" + name;
    Tree.Found found = tree.readUpTo(MAX_BYTES, path);
    if (found == null) return new Controller.Due();
    Op remove = Op.delete(path, found.version());
    Request request = parse(name, found.content());
    if (request == null) {
      System.err.println("refuses " + path);
      return new Controller.Due(remove);
    }
    List<Op> ops = new ArrayList<>();
    Set<Tree.Key> changed = new HashSet<>();
    Set<String> begun = new HashSet<>(tree.recordsOf.keySet());
    Map<Tree.Key, List<Integer>> refused = new HashMap<>();
    for (var each : request.targets().entrySet()) {
      Tree.Key key = each.getKey();
      List<Integer> target = each.getValue();
      Tree.Partition partition = tree.partitions.get(key);
      Tree.Flight flight = partition == null ? null : partition.flight();
      if (isRefused(tree, partition, target, request.legacy())) {
        refused.put(key, target);
      } else if (flight == null) {
        if (begun.add(key.topic())) {
          ops.add(make(Tree.RECORDS + "/" + key.topic(), new byte[0]));
        }
        int top = partition.assigned().size();
        Tree.Flight next = new Tree.Flight(top, target, request.legacy(), 0);
        ops.add(make(key.record(), next.encode()));
      } else if (!flight.target().equals(target)) {
        Tree.Flight next = new Tree.Flight(flight.top(), target, flight.legacy(), 0);
        ops.add(Op.setData(key.record(), next.encode(), flight.version()));
        changed.add(key);
      }
    }
    if (ops.isEmpty()) {
      List<Op> entries = request.legacy() ? removeEntries(tree, refused::get) : List.of();
      return new Controller.Due(Stream.concat(Stream.of(remove), entries.stream()).toList(), () -> {});
    }
    return new Controller.Due(
        ops,
        () -> {
          dropDue.addAll(changed);
          announced.removeAll(changed);
          completing.keySet().removeAll(changed);
        });
  }

  private static Op make(String path, byte[] content) {
    return Controller.create(path, content, CreateMode.PERSISTENT);
  }

  /** Whether nothing is to be started or changed, and nothing in flight serves the target. */
  private static boolean isRefused(
      Tree tree, Tree.Partition partition, List<Integer> target, boolean legacy)
      throws KeeperException, InterruptedException {
    boolean distinct = new HashSet<>(target).size() == target.size();
    if (partition == null || target.isEmpty() || !distinct) return true;
    if (!tree.known.containsAll(target)) return true;
    if (partition.flight() != null) return partition.flight().legacy() != legacy;
    return partition.assigned().equals(target)
        || partition.assigned().size() < tree.minimum(partition.key().topic());
  }

  // -- the steps of a reassignment

  Controller.Due step(Tree tree) {
    for (Tree.Partition each : tree.partitions.values()) {
      Controller.Due due = each.flight() == null ? null : step(each, tree);
      if (due != null) return due;
    }
    return null;
  }

  private Controller.Due step(Tree.Partition partition, Tree tree) {
    Tree.Key key = partition.key();
    Tree.State state = partition.state();
    if (dropDue.contains(key)) return drop(partition, tree);
    Set<Integer> expanded = new LinkedHashSet<>(partition.assigned());
    expanded.addAll(partition.flight().target());
    if (expanded.size() > partition.assigned().size()) {
      return setAssigned(partition, List.copyOf(expanded)).then(() -> announced.remove(key));
    }
    if (state == null) return null;
    if (!announced.contains(key)) {
      return setState(partition, state.leader(), state.isr()).then(() -> announced.add(key));
    }
    return complete(partition, tree);
  }

  /** Makes room for a new target: the best `top` replicas stay. */
  private Controller.Due drop(Tree.Partition partition, Tree tree) {
    Tree.Key key = partition.key();
    List<Integer> assigned = partition.assigned();
    int top = partition.flight().top();
    if (assigned.size() <= top) return new Controller.Due().then(() -> dropDue.remove(key));
    Tree.State state = partition.state();
    boolean led =
        state != null
            && tree.live.containsKey(state.leader())
            && state.isr().contains(state.leader());
    if (!led) return null;
    Set<Integer> ranked = new LinkedHashSet<>(List.of(state.leader()));
    assigned.stream().filter(state.isr()::contains).forEach(ranked::add);
    ranked.addAll(assigned);
    List<Integer> kept = List.copyOf(ranked).subList(0, top);
    List<Integer> isr = keep(state.isr(), kept);
    if (isr.size() < state.isr().size()) return setState(partition, state.leader(), isr);
    return setAssigned(partition, keep(assigned, kept)).then(() -> dropDue.remove(key));
  }

  private Controller.Due complete(Tree.Partition partition, Tree tree) {
    Tree.Key key = partition.key();
    Tree.State state = partition.state();
    List<Integer> target = partition.flight().target();
    Stage reached = completing.get(key);
    if (reached == Stage.OLD_STOPPED) return finish(partition, tree);
    if (state.leader() == Tree.NO_LEADER || !state.isr().containsAll(target)) {
      completing.remove(key);
      return null;
    }
    if (reached == null || !target.contains(state.leader())) {
      int leader =
          target.contains(state.leader())
              ? state.leader()
              : target.stream().filter(tree.live::containsKey).findFirst().orElseThrow();
      return setState(partition, leader, state.isr())
          .then(() -> completing.put(key, Stage.LEADER_TOLD));
    }
    Runnable stopped = () -> completing.put(key, Stage.OLD_STOPPED);
    List<Integer> isr = keep(state.isr(), target);
    boolean nobodyLeaves = isr.size() == state.isr().size();
    Controller.Due due =
        nobodyLeaves ? new Controller.Due() : setState(partition, state.leader(), isr);
    return due.then(stopped);
  }

  /** Writes the target, removes what a client of the old znode waits for, and last the record. */
  private Controller.Due finish(Tree.Partition partition, Tree tree) {
    Tree.Key key = partition.key();
    Tree.Flight flight = partition.flight();
    if (!partition.assigned().equals(flight.target())) {
      return setAssigned(partition, flight.target());
    }
    if (flight.legacy()) {
      List<Op> ops = removeEntries(tree, each -> each.equals(key) ? flight.target() : null);
      if (!ops.isEmpty()) return new Controller.Due(ops, () -> {});
    }
    int beside = tree.recordsOf.get(key.topic());
    List<Op> ops = Controller.removeRecord(key.record(), flight.version(), beside);
    return new Controller.Due(
        ops,
        () -> {
          completing.remove(key);
          announced.remove(key);
        });
  }

  private static List<Integer> keep(List<Integer> all, List<Integer> some) {
    return all.stream().filter(some::contains).toList();
  }

  private Controller.Due setState(Tree.Partition partition, int leader, List<Integer> isr) {
    return new Controller.Due(Controller.setState(partition, leader, isr, epoch));
  }

  private static Controller.Due setAssigned(Tree.Partition partition, List<Integer> replicas) {
    String path = Tree.TOPICS + "/" + partition.key().topic();
    Tree.Found topic = partition.topic();
    return new Controller.Due(
        Op.setData(path, partition.withAssigned(replicas), topic.version()));
  }

  // -- the old znode

  /** The entries of the old znode; null where its content is not of the format. */
  private static Map<Tree.Key, List<Integer>> parseOld(Tree.Found old) {
    JsonNode content = Json.parse(old.content());
    if (!Json.isVersionOne(content) || !content.path("partitions").isArray()) return null;
    Map<Tree.Key, List<Integer>> entries = new LinkedHashMap<>();
    for (JsonNode each : content.path("partitions")) {
      List<Integer> target = Json.replicas(each.get("replicas"));
      boolean fits = each.path("topic").isTextual() && each.path("partition").isInt();
      if (!fits || target == null) return null;
      Tree.Key key = new Tree.Key(each.get("topic").textValue(), each.get("partition").intValue());
      if (entries.put(key, target) != null) return null;
    }
    return entries;
  }

  /** Makes a request of the old znode's entries, once for each life of it. */
  Controller.Due translate(Tree tree) {
    if (tree.old == null) return null;
    Map<Tree.Key, List<Integer>> entries = parseOld(tree.old);
    if (entries == null || entries.isEmpty()) {
      System.err.println("removes " + Tree.OLD + ", which asks for nothing");
      return new Controller.Due(Op.delete(Tree.OLD, tree.old.version()));
    }
    if (translated == tree.old.born()) return null;
    ObjectNode request = Json.object().put("version", 1);
    ObjectNode assignments = request.putObject("assignments");
    entries.forEach(
        (key, target) ->
            assignments
                .withObjectProperty(key.topic())
                .set(String.valueOf(key.number()), Json.list(target)));
    request.put("legacy", true);
    long born = tree.old.born();
    return new Controller.Due(
            Controller.create(
                Tree.QUEUE + "/request_", Json.bytes(request), CreateMode.PERSISTENT_SEQUENTIAL))
        .then(() -> translated = born);
  }

  /** Takes out of the old znode what names these targets, and the znode with its last entry. */
  private static List<Op> removeEntries(
      Tree tree, Function<Tree.Key, List<Integer>> done) {
    if (tree.old == null) return List.of();
    JsonNode content = Json.parse(tree.old.content());
    if (!Json.isVersionOne(content) || parseOld(tree.old) == null) return List.of();
    ArrayNode entries = (ArrayNode) content.path("partitions");
    int before = entries.size();
    var each = entries.elements();
    while (each.hasNext()) {
      JsonNode entry = each.next();
      Tree.Key key = new Tree.Key(entry.get("topic").textValue(), entry.get("partition").intValue());
      if (Json.replicas(entry.get("replicas")).equals(done.apply(key))) each.remove();
    }
    if (entries.size() == before) return List.of();
    int version = tree.old.version();
    return List.of(
        entries.isEmpty()
            ? Op.delete(Tree.OLD, version)
            : Op.setData(Tree.OLD, Json.bytes(content), version));
  }
}
