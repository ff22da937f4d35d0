package io.debezium.connector.base;

import io.debezium.pipeline.Sizeable;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * The queue between the connector and the engine, in place of Debezium's own of this name: the
 * MariaDB connector, which is older than the engine, creates it by a constructor that is gone.
 */
public class DefaultQueueProvider<T extends Sizeable> implements QueueProvider<T> {
  private final LinkedBlockingQueue<T> queue = new LinkedBlockingQueue<>();

  public DefaultQueueProvider() {}

  public DefaultQueueProvider(int limit) {}

  @Override
  public String name() {
    return "memory";
  }

  @Override
  public void configure(Map<String, ?> options) {}

  @Override
  public void enqueue(T event) throws InterruptedException {
    queue.put(event);
  }

  @Override
  public T poll() {
    return queue.poll();
  }

  @Override
  public int size() {
    return queue.size();
  }
}
