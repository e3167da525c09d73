# Exports the fleet into BACKUP_DIR and keeps the newest BACKUP_KEEP exports. Nothing is removed unless the new one is there.
set -eu
umask 077
name=fleet-$(date -u +%Y%m%dT%H%M%SZ).json
if [ "$BACKUP_HISTORY" = true ] && flux-resourceset export --history "$BACKUP_DIR/$name"; then
  echo "with the change log"
else # also when the log was folded by `flux-resourceset compact`: then its history is not whole, and is refused
  flux-resourceset export "$BACKUP_DIR/$name"
fi
test -s "$BACKUP_DIR/$name"
for old in $(cd "$BACKUP_DIR" && ls -1 | grep '^fleet-[0-9]\{8\}T[0-9]\{6\}Z\.json$' | sort -r | tail -n "+$((BACKUP_KEEP + 1))"); do
  rm -- "$BACKUP_DIR/$old"
  echo "removed $old"
done
