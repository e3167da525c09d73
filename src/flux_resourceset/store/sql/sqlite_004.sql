-- Version 4: what an entry undoes.
ALTER TABLE entries ADD COLUMN reverts INTEGER;
