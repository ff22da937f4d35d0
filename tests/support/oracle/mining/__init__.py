"""LogMiner: sessions, and what redo records look like in V$LOGMNR_CONTENTS."""
