#!/bin/bash
# Runs the command line, or, as Spark on Kubernetes asks for by the first argument, Spark's driver or an executor.
set -euo pipefail

case "${1:-}" in
    driver)
        # Spark has written the application's properties to a file, which the arguments name.
        exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
            --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" "${@:2}"
        ;;
    executor)
        # Spark numbers the JVM's options: SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, …
        options=()
        for ((number = 0; ; number++)); do
            name="SPARK_JAVA_OPT_$number"
            [[ -v $name ]] || break
            options+=("${!name}")
        done
        exec java "${options[@]}" -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" \
            -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$SPARK_HOME/jars/*" \
            org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
            --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
            --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
            --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
        ;;
    *)
        exec floodmark "$@"
        ;;
esac
