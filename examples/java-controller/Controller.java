import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.stream.Stream;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/** One controller: it reads everything, takes the first step that is due, and begins again. */
final class Controller {
  private static final int SESSION_MS = 30_000;
  private static final List<String> ROOTS =
      List.of(
          "/brokers", Tree.BROKERS, Tree.TOPICS, "/config", Tree.KNOWN, Tree.SETTINGS, "/admin",
          Tree.QUEUE, Tree.RECORDS);

  /** What is to be written in one transaction, and what to note when it is. */
  record Due(List<Op> ops, Runnable then) {
    Due(Op... ops) {
      this(List.of(ops), () -> {});
    }

    Due then(Runnable note) {
      return new Due(ops, note);
    }
  }

  private final int id;
  private final Map<Integer, Broker> brokers;
  private final ZooKeeper zookeeper;
  private final ExecutorService worker = Executors.newSingleThreadExecutor();
  private boolean ended = false;
  /** The epoch of the term and the version of its znode; the moves; null while another acts. */
  private volatile Moves moves = null;
  private int epoch;
  private int fence;
  private final Map<String, Broker.News> told = new HashMap<>();

  Controller(String address, int id, Map<Integer, Broker> brokers) throws Exception {
    this.id = id;
    this.brokers = brokers;
    zookeeper = connect(address);
    for (String path : ROOTS) make(path, new byte[0]);
    make(Tree.EPOCH, "0".getBytes());
    work();
  }

  static ZooKeeper connect(String address) throws Exception {
    CountDownLatch connected = new CountDownLatch(1);
    ZooKeeper made =
        new ZooKeeper(
            address,
            SESSION_MS,
            event -> {
              if (event.getState() == KeeperState.SyncConnected) connected.countDown();
            });
    connected.await();
    return made;
  }

  static Op create(String path, byte[] content, CreateMode mode) {
    return Op.create(path, content, ZooDefs.Ids.OPEN_ACL_UNSAFE, mode);
  }

  private void make(String path, byte[] content) throws KeeperException, InterruptedException {
    try {
      zookeeper.create(path, content, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    } catch (KeeperException.NodeExistsException already) {
      // Somebody else made it.
    }
  }

  boolean acts() {
    return moves != null;
  }

  /** The process dies: its session closes and its memory is gone. */
  void kill() throws InterruptedException {
    worker.shutdown();
    synchronized (this) {
      ended = true;
      zookeeper.close();
    }
  }

  /** Works until nothing is due. */
  synchronized void work() throws KeeperException, InterruptedException {
    while (!ended && step()) {}
  }

  private void wake(org.apache.zookeeper.WatchedEvent event) {
    if (event.getType() == EventType.None) return;
    try {
      worker.execute(
          () -> {
            try {
              work();
            } catch (KeeperException | InterruptedException error) {
              System.err.println("controller " + id + ": " + error);
            }
          });
    } catch (RejectedExecutionException killed) {
      // A watch that fires at the end.
    }
  }

  private boolean step() throws KeeperException, InterruptedException {
    Tree tree = new Tree(zookeeper, this::wake);
    if (tree.acting == null || tree.acting.owner() != zookeeper.getSessionId()) {
      moves = null;
      return tree.acting == null && contend(tree);
    }
    moves.takeOffice(tree);
    tell(tree);
    Optional<Due> due =
        first(
            () -> removeForeign(tree),
            () -> bringOnline(tree),
            () -> replaceTheDead(tree),
            () -> moves.step(tree),
            () -> moves.takeUp(tree),
            () -> moves.translate(tree));
    if (due.isEmpty()) return false;
    if (due.get().ops().isEmpty() || write(due.get().ops())) due.get().then().run();
    return true;
  }

  /** Looks for what is due; each may read. */
  interface Look {
    Due look() throws KeeperException, InterruptedException;
  }

  static Optional<Due> first(Look... looks) throws KeeperException, InterruptedException {
    for (Look each : looks) {
      Due due = each.look();
      if (due != null) return Optional.of(due);
    }
    return Optional.empty();
  }

  private boolean contend(Tree tree) throws KeeperException, InterruptedException {
    int next = Integer.parseInt(new String(tree.epoch.content())) + 1;
    ObjectNode about = Json.object().put("version", 1).put("brokerid", id);
    about.put("timestamp", String.valueOf(System.currentTimeMillis()));
    boolean elected =
        commit(
            List.of(
                create(Tree.CONTROLLER, Json.bytes(about), CreateMode.EPHEMERAL),
                Op.setData(Tree.EPOCH, String.valueOf(next).getBytes(), tree.epoch.version())));
    if (elected) {
      epoch = next;
      fence = tree.epoch.version() + 1;
      told.clear();
      moves = new Moves(epoch);
    }
    return true;
  }

  /** Writes under the fence of the term. Returns whether that is done; else decide again. */
  private boolean write(List<Op> ops) throws KeeperException, InterruptedException {
    return commit(Stream.concat(Stream.of(Op.check(Tree.EPOCH, fence)), ops.stream()).toList());
  }

  private boolean commit(List<Op> ops) throws KeeperException, InterruptedException {
    try {
      zookeeper.multi(ops);
      return true;
    } catch (KeeperException refused) {
      switch (refused.code()) {
        case NONODE, NODEEXISTS, BADVERSION, NOTEMPTY:
          return false;
        default:
          throw refused;
      }
    }
  }

  /** Tells each live assigned broker what has changed since it was told last. */
  private void tell(Tree tree) {
    for (Tree.Partition each : tree.partitions.values()) {
      if (each.state() == null) continue;
      Broker.News news = new Broker.News(each.assigned(), each.state(), epoch);
      for (int replica : each.assigned()) {
        // A broker that is back has another registration, and is told everything.
        Long registration = tree.live.get(replica);
        Broker broker = brokers.get(replica);
        // One that has registered and does not listen yet is told at the next look.
        if (registration == null || broker == null) continue;
        if (!news.equals(told.put(registration + " " + each.key(), news))) {
          broker.hear(each.key(), news);
        }
      }
    }
  }

  /** Removes a record that cannot be one, or whose partition does not exist. */
  private Due removeForeign(Tree tree) {
    for (var each : tree.foreign.entrySet()) {
      System.err.println("removes " + each.getKey() + ", which is no record of a reassignment");
      return new Due(removeRecord(each.getKey(), -1, each.getValue()), () -> {});
    }
    return null;
  }

  /** Removes a record, and the znode above it with the last one. */
  static List<Op> removeRecord(String path, int version, int beside) {
    List<Op> ops = new ArrayList<>(List.of(Op.delete(path, version)));
    if (beside == 1) ops.add(Op.delete(path.substring(0, path.lastIndexOf('/')), -1));
    return ops;
  }

  private Due bringOnline(Tree tree) {
    for (Tree.Partition each : tree.partitions.values()) {
      List<Integer> isr = each.assigned().stream().filter(tree.live::containsKey).toList();
      if (each.state() != null || isr.isEmpty()) continue;
      Stream<Op> above =
          each.lacking().stream().map(path -> create(path, new byte[0], CreateMode.PERSISTENT));
      byte[] state = new Tree.State(isr.get(0), 0, isr, 0).encode(epoch);
      Op made = create(each.key().state(), state, CreateMode.PERSISTENT);
      return new Due(Stream.concat(above, Stream.of(made)).toList(), () -> {});
    }
    return null;
  }

  /** Has somebody lead who is alive, and nobody dead in sync under a leader. */
  private Due replaceTheDead(Tree tree) {
    for (Tree.Partition each : tree.partitions.values()) {
      Tree.State state = each.state();
      if (state == null) continue;
      List<Integer> isr = state.isr().stream().filter(tree.live::containsKey).toList();
      Optional<Integer> next = each.assigned().stream().filter(isr::contains).findFirst();
      if (tree.live.containsKey(state.leader())) {
        if (isr.size() < state.isr().size()) return new Due(set(each, state.leader(), isr));
      } else if (next.isPresent()) {
        return new Due(set(each, next.get(), isr));
      } else if (state.leader() != Tree.NO_LEADER) {
        return new Due(set(each, Tree.NO_LEADER, state.isr()));
      }
    }
    return null;
  }

  private Op set(Tree.Partition partition, int leader, List<Integer> isr) {
    return setState(partition, leader, isr, epoch);
  }

  /** The write of a state that follows another: its epoch is one higher. */
  static Op setState(Tree.Partition partition, int leader, List<Integer> isr, int epoch) {
    Tree.State next = new Tree.State(leader, partition.state().epoch() + 1, isr, 0);
    return Op.setData(partition.key().state(), next.encode(epoch), partition.state().version());
  }
}
