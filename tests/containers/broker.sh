# What the start script of Kafka's own image does: KAFKA_… become properties, the log directory is formatted, Kafka runs.
set -eu
properties=/tmp/server.properties
echo "log.dirs=/tmp/kafka-logs" > "$properties"
echo "log.cleaner.dedupe.buffer.size=2097152" >> "$properties"
env | grep '^KAFKA_' | while IFS='=' read -r name value; do
  key=$(echo "${name#KAFKA_}" | tr 'A-Z_' 'a-z.')
  echo "$key=$value" >> "$properties"
done
# The logger that writes to stderr must be the first that is found.
jars="$(echo /kafka/slf4j-*1.7.36.jar | tr ' ' ':'):/kafka/*"
set -- /java/bin/java -Xmx160m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$jars"
"$@" kafka.tools.StorageTool format -t "$CLUSTER_ID" -c "$properties"
exec "$@" kafka.Kafka "$properties"
