import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/** A broker as ZooKeeper sees it: a session, a registration and, as a leader, the in-sync set. */
final class Broker {
  /** What a controller says of a partition, and in which term. */
  record News(List<Integer> assigned, Tree.State state, int controllerEpoch) {}

  private final int id;
  private final ZooKeeper zookeeper;
  private final Map<Tree.Key, News> told = new ConcurrentHashMap<>();

  Broker(String address, int id) throws Exception {
    this.id = id;
    zookeeper = Controller.connect(address);
    String known = Tree.KNOWN + "/" + id;
    ObjectNode settings = Json.object().put("version", 1);
    settings.set("config", Json.object());
    try {
      zookeeper.create(
          known, Json.bytes(settings), ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    } catch (KeeperException.NodeExistsException already) {
      // It has been here before.
    }
    zookeeper.create(
        Tree.BROKERS + "/" + id,
        Json.bytes(describe()),
        ZooDefs.Ids.OPEN_ACL_UNSAFE,
        CreateMode.EPHEMERAL);
  }

  private static ObjectNode describe() {
    ObjectNode about = Json.object().put("version", 4).put("host", "127.0.0.1").put("port", 9092);
    about.put("jmx_port", -1).put("timestamp", String.valueOf(System.currentTimeMillis()));
    about.putArray("endpoints").add("PLAINTEXT://127.0.0.1:9092");
    about.putObject("listener_security_protocol_map").put("PLAINTEXT", "PLAINTEXT");
    return about;
  }

  void stop() throws InterruptedException {
    zookeeper.close();
  }

  /** A message of a controller; what is older than what is known changes nothing. */
  void hear(Tree.Key key, News news) {
    told.merge(key, news, (known, said) -> isOlder(said, known) ? known : said);
  }

  private static boolean isOlder(News said, News known) {
    if (said.controllerEpoch() != known.controllerEpoch()) {
      return said.controllerEpoch() < known.controllerEpoch();
    }
    return said.state().version() < known.state().version();
  }

  boolean leads(Tree.Key key) {
    News known = told.get(key);
    return known != null && known.state().leader() == id;
  }

  /** As leader, takes a replica in or lets it go. Returns whether that is done. */
  boolean change(int replica, Tree.Key key, boolean joins) throws Exception {
    News known = told.get(key);
    List<Integer> isr = new ArrayList<>(known.state().isr());
    if (replica == id || isr.contains(replica) == joins) return false;
    if (joins) {
      boolean mayJoin =
          known.assigned().contains(replica)
              && zookeeper.exists(Tree.BROKERS + "/" + replica, false) != null;
      if (!mayJoin) return false;
      isr.add(replica);
    } else {
      isr.remove(Integer.valueOf(replica));
    }
    JsonNode content = Json.parse(zookeeper.getData(key.state(), false, null));
    ((ObjectNode) content).set("isr", Json.list(isr));
    try {
      int version = known.state().version();
      int now = zookeeper.setData(key.state(), Json.bytes(content), version).getVersion();
      Tree.State state =
          new Tree.State(known.state().leader(), known.state().epoch(), List.copyOf(isr), now);
      hear(key, new News(known.assigned(), state, known.controllerEpoch()));
      return true;
    } catch (KeeperException.BadVersionException | KeeperException.NoNodeException moved) {
      return false;
    }
  }
}
