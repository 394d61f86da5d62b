CREATE SCHEMA shard_0;
CREATE FUNCTION shard_0.callbacks_checksum() RETURNS trigger LANGUAGE plpgsql AS $$
   begin
     if tg_op = 'UPDATE' and old.checksum is distinct from paybox_checksum(coalesce(cast(old.id as text), '') || '' || coalesce(cast(old.seq as text), '') || '' || coalesce(cast(old.payment_id as text), '') || '' || coalesce(cast(old.partner as text), '') || '' || coalesce(cast(old.url as text), '') || '' || coalesce(cast(old.body as text), '') || '' || coalesce(cast(old.status as text), '') || '' || coalesce(cast(old.warning as text), '') || '' || coalesce(cast(old.tries as text), '') || '' || coalesce(cast(old.next_at_ms as text), '') || '' || coalesce(cast(old.created_at_ms as text), '')) then
       raise exception 'a row of callbacks is damaged: %', old.id using errcode = 'data_corrupted';
     end if;
     new.checksum := paybox_checksum(coalesce(cast(new.id as text), '') || '' || coalesce(cast(new.seq as text), '') || '' || coalesce(cast(new.payment_id as text), '') || '' || coalesce(cast(new.partner as text), '') || '' || coalesce(cast(new.url as text), '') || '' || coalesce(cast(new.body as text), '') || '' || coalesce(cast(new.status as text), '') || '' || coalesce(cast(new.warning as text), '') || '' || coalesce(cast(new.tries as text), '') || '' || coalesce(cast(new.next_at_ms as text), '') || '' || coalesce(cast(new.created_at_ms as text), ''));
     return new;
   end $$;
CREATE FUNCTION shard_0.credits_checksum() RETURNS trigger LANGUAGE plpgsql AS $$
   begin
     if tg_op = 'UPDATE' and old.checksum is distinct from paybox_checksum(coalesce(cast(old.id as text), '') || '' || coalesce(cast(old.seq as text), '') || '' || coalesce(cast(old.source as text), '') || '' || coalesce(cast(old.source_id as text), '') || '' || coalesce(cast(old.reference as text), '') || '' || coalesce(cast(old.bank_account as text), '') || '' || coalesce(cast(old.virtual_account as text), '') || '' || coalesce(cast(old.amount as text), '') || '' || coalesce(cast(old.text as text), '') || '' || coalesce(cast(old.bank_time_ms as text), '') || '' || coalesce(cast(old.received_at_ms as text), '') || '' || coalesce(cast(old.late as text), '') || '' || coalesce(cast(old.payment_id as text), '') || '' || coalesce(cast(old.order_amount as text), '') || '' || coalesce(cast(old.order_paid as text), '')) then
       raise exception 'a row of credits is damaged: %', old.id using errcode = 'data_corrupted';
     end if;
     new.checksum := paybox_checksum(coalesce(cast(new.id as text), '') || '' || coalesce(cast(new.seq as text), '') || '' || coalesce(cast(new.source as text), '') || '' || coalesce(cast(new.source_id as text), '') || '' || coalesce(cast(new.reference as text), '') || '' || coalesce(cast(new.bank_account as text), '') || '' || coalesce(cast(new.virtual_account as text), '') || '' || coalesce(cast(new.amount as text), '') || '' || coalesce(cast(new.text as text), '') || '' || coalesce(cast(new.bank_time_ms as text), '') || '' || coalesce(cast(new.received_at_ms as text), '') || '' || coalesce(cast(new.late as text), '') || '' || coalesce(cast(new.payment_id as text), '') || '' || coalesce(cast(new.order_amount as text), '') || '' || coalesce(cast(new.order_paid as text), ''));
     return new;
   end $$;
CREATE FUNCTION shard_0.ledger_checksum() RETURNS trigger LANGUAGE plpgsql AS $$
   begin
     if tg_op = 'UPDATE' and old.checksum is distinct from paybox_checksum(coalesce(cast(old.name as text), '') || '' || coalesce(cast(old.end_seq as text), '') || '' || coalesce(cast(old.end_link as text), '') || '' || coalesce(cast(old.pruned_seq as text), '') || '' || coalesce(cast(old.pruned_link as text), '') || '' || coalesce(cast(old.pruned_count as text), '')) then
       raise exception 'a row of ledger is damaged: %', old.name using errcode = 'data_corrupted';
     end if;
     new.checksum := paybox_checksum(coalesce(cast(new.name as text), '') || '' || coalesce(cast(new.end_seq as text), '') || '' || coalesce(cast(new.end_link as text), '') || '' || coalesce(cast(new.pruned_seq as text), '') || '' || coalesce(cast(new.pruned_link as text), '') || '' || coalesce(cast(new.pruned_count as text), ''));
     return new;
   end $$;
CREATE FUNCTION shard_0.notices_checksum() RETURNS trigger LANGUAGE plpgsql AS $$
   begin
     if tg_op = 'UPDATE' and old.checksum is distinct from paybox_checksum(coalesce(cast(old.payment_id as text), '') || '' || coalesce(cast(old.terminal_code as text), '') || '' || coalesce(cast(old.push_id as text), '') || '' || coalesce(cast(old.created_at_ms as text), '') || '' || coalesce(cast(old.told_at_ms as text), '') || '' || coalesce(cast(old.reported_at_ms as text), '') || '' || coalesce(cast(old.recorded as text), '')) then
       raise exception 'a row of notices is damaged: %', old.payment_id using errcode = 'data_corrupted';
     end if;
     new.checksum := paybox_checksum(coalesce(cast(new.payment_id as text), '') || '' || coalesce(cast(new.terminal_code as text), '') || '' || coalesce(cast(new.push_id as text), '') || '' || coalesce(cast(new.created_at_ms as text), '') || '' || coalesce(cast(new.told_at_ms as text), '') || '' || coalesce(cast(new.reported_at_ms as text), '') || '' || coalesce(cast(new.recorded as text), ''));
     return new;
   end $$;
CREATE FUNCTION shard_0.order_codes_checksum() RETURNS trigger LANGUAGE plpgsql AS $$
   begin
     if tg_op = 'UPDATE' and old.checksum is distinct from paybox_checksum(coalesce(cast(old.code as text), '') || '' || coalesce(cast(old.bank_account as text), '') || '' || coalesce(cast(old.order_ref as text), '') || '' || coalesce(cast(old.created_at_ms as text), '')) then
       raise exception 'a row of order_codes is damaged: %', old.code using errcode = 'data_corrupted';
     end if;
     new.checksum := paybox_checksum(coalesce(cast(new.code as text), '') || '' || coalesce(cast(new.bank_account as text), '') || '' || coalesce(cast(new.order_ref as text), '') || '' || coalesce(cast(new.created_at_ms as text), ''));
     return new;
   end $$;
CREATE FUNCTION shard_0.orders_checksum() RETURNS trigger LANGUAGE plpgsql AS $$
   begin
     if tg_op = 'UPDATE' and old.checksum is distinct from paybox_checksum(coalesce(cast(old.id as text), '') || '' || coalesce(cast(old.seq as text), '') || '' || coalesce(cast(old.partner as text), '') || '' || coalesce(cast(old.order_id as text), '') || '' || coalesce(cast(old.bank_account as text), '') || '' || coalesce(cast(old.bank_code as text), '') || '' || coalesce(cast(old.user_bank_name as text), '') || '' || coalesce(cast(old.amount as text), '') || '' || coalesce(cast(old.content as text), '') || '' || coalesce(cast(old.trans_type as text), '') || '' || coalesce(cast(old.qr_code as text), '') || '' || coalesce(cast(old.terminal_code as text), '') || '' || coalesce(cast(old.sub_terminal_code as text), '') || '' || coalesce(cast(old.service_code as text), '') || '' || coalesce(cast(old.sign as text), '') || '' || coalesce(cast(old.url_link as text), '') || '' || coalesce(cast(old.status as text), '') || '' || coalesce(cast(old.failure as text), '') || '' || coalesce(cast(old.last_push_id as text), '') || '' || coalesce(cast(old.shown_on as text), '') || '' || coalesce(cast(old.shown_push_id as text), '') || '' || coalesce(cast(old.created_at_ms as text), '') || '' || coalesce(cast(old.updated_at_ms as text), '') || '' || coalesce(cast(old.paid_at_ms as text), '')) then
       raise exception 'a row of orders is damaged: %', old.id using errcode = 'data_corrupted';
     end if;
     new.checksum := paybox_checksum(coalesce(cast(new.id as text), '') || '' || coalesce(cast(new.seq as text), '') || '' || coalesce(cast(new.partner as text), '') || '' || coalesce(cast(new.order_id as text), '') || '' || coalesce(cast(new.bank_account as text), '') || '' || coalesce(cast(new.bank_code as text), '') || '' || coalesce(cast(new.user_bank_name as text), '') || '' || coalesce(cast(new.amount as text), '') || '' || coalesce(cast(new.content as text), '') || '' || coalesce(cast(new.trans_type as text), '') || '' || coalesce(cast(new.qr_code as text), '') || '' || coalesce(cast(new.terminal_code as text), '') || '' || coalesce(cast(new.sub_terminal_code as text), '') || '' || coalesce(cast(new.service_code as text), '') || '' || coalesce(cast(new.sign as text), '') || '' || coalesce(cast(new.url_link as text), '') || '' || coalesce(cast(new.status as text), '') || '' || coalesce(cast(new.failure as text), '') || '' || coalesce(cast(new.last_push_id as text), '') || '' || coalesce(cast(new.shown_on as text), '') || '' || coalesce(cast(new.shown_push_id as text), '') || '' || coalesce(cast(new.created_at_ms as text), '') || '' || coalesce(cast(new.updated_at_ms as text), '') || '' || coalesce(cast(new.paid_at_ms as text), ''));
     return new;
   end $$;
CREATE FUNCTION shard_0.paybox_checksum(text) RETURNS text LANGUAGE sql AS $_$ select left(encode(sha256(convert_to($1, 'UTF8')), 'hex'), 16) $_$;
CREATE FUNCTION shard_0.payment_requests_checksum() RETURNS trigger LANGUAGE plpgsql AS $$
   begin
     if tg_op = 'UPDATE' and old.checksum is distinct from paybox_checksum(coalesce(cast(old.order_code as text), '') || '' || coalesce(cast(old.source as text), '') || '' || coalesce(cast(old.order_ref as text), '') || '' || coalesce(cast(old.bank_account as text), '') || '' || coalesce(cast(old.virtual_account as text), '') || '' || coalesce(cast(old.created_at_ms as text), '') || '' || coalesce(cast(old.expires_at_ms as text), '') || '' || coalesce(cast(old.ended_at_ms as text), '') || '' || coalesce(cast(old.closed_at_ms as text), '')) then
       raise exception 'a row of payment_requests is damaged: %', old.order_code using errcode = 'data_corrupted';
     end if;
     new.checksum := paybox_checksum(coalesce(cast(new.order_code as text), '') || '' || coalesce(cast(new.source as text), '') || '' || coalesce(cast(new.order_ref as text), '') || '' || coalesce(cast(new.bank_account as text), '') || '' || coalesce(cast(new.virtual_account as text), '') || '' || coalesce(cast(new.created_at_ms as text), '') || '' || coalesce(cast(new.expires_at_ms as text), '') || '' || coalesce(cast(new.ended_at_ms as text), '') || '' || coalesce(cast(new.closed_at_ms as text), ''));
     return new;
   end $$;
CREATE FUNCTION shard_0.payments_checksum() RETURNS trigger LANGUAGE plpgsql AS $$
   begin
     if tg_op = 'UPDATE' and old.checksum is distinct from paybox_checksum(coalesce(cast(old.id as text), '') || '' || coalesce(cast(old.seq as text), '') || '' || coalesce(cast(old.partner as text), '') || '' || coalesce(cast(old.order_ref as text), '') || '' || coalesce(cast(old.order_id as text), '') || '' || coalesce(cast(old.reference_number as text), '') || '' || coalesce(cast(old.bank_account as text), '') || '' || coalesce(cast(old.bank_code as text), '') || '' || coalesce(cast(old.amount as text), '') || '' || coalesce(cast(old.content as text), '') || '' || coalesce(cast(old.trans_type as text), '') || '' || coalesce(cast(old.paid_at_ms as text), '') || '' || coalesce(cast(old.link as text), '')) then
       raise exception 'a row of payments is damaged: %', old.id using errcode = 'data_corrupted';
     end if;
     new.checksum := paybox_checksum(coalesce(cast(new.id as text), '') || '' || coalesce(cast(new.seq as text), '') || '' || coalesce(cast(new.partner as text), '') || '' || coalesce(cast(new.order_ref as text), '') || '' || coalesce(cast(new.order_id as text), '') || '' || coalesce(cast(new.reference_number as text), '') || '' || coalesce(cast(new.bank_account as text), '') || '' || coalesce(cast(new.bank_code as text), '') || '' || coalesce(cast(new.amount as text), '') || '' || coalesce(cast(new.content as text), '') || '' || coalesce(cast(new.trans_type as text), '') || '' || coalesce(cast(new.paid_at_ms as text), '') || '' || coalesce(cast(new.link as text), ''));
     return new;
   end $$;
CREATE FUNCTION shard_0.pushes_checksum() RETURNS trigger LANGUAGE plpgsql AS $$
   begin
     if tg_op = 'UPDATE' and old.checksum is distinct from paybox_checksum(coalesce(cast(old.id as text), '') || '' || coalesce(cast(old.seq as text), '') || '' || coalesce(cast(old.order_ref as text), '') || '' || coalesce(cast(old.terminal_code as text), '') || '' || coalesce(cast(old.status as text), '') || '' || coalesce(cast(old.code as text), '') || '' || coalesce(cast(old.created_at_ms as text), '') || '' || coalesce(cast(old.expires_at_ms as text), '') || '' || coalesce(cast(old.confirmed_at_ms as text), '') || '' || coalesce(cast(old.ended_at_ms as text), '')) then
       raise exception 'a row of pushes is damaged: %', old.id using errcode = 'data_corrupted';
     end if;
     new.checksum := paybox_checksum(coalesce(cast(new.id as text), '') || '' || coalesce(cast(new.seq as text), '') || '' || coalesce(cast(new.order_ref as text), '') || '' || coalesce(cast(new.terminal_code as text), '') || '' || coalesce(cast(new.status as text), '') || '' || coalesce(cast(new.code as text), '') || '' || coalesce(cast(new.created_at_ms as text), '') || '' || coalesce(cast(new.expires_at_ms as text), '') || '' || coalesce(cast(new.confirmed_at_ms as text), '') || '' || coalesce(cast(new.ended_at_ms as text), ''));
     return new;
   end $$;
CREATE TABLE shard_0.accounts ( bank_account text NOT NULL COLLATE pg_catalog."C", bank_code text NOT NULL, user_bank_name text NOT NULL, partner text COLLATE pg_catalog."C", managed text NOT NULL, disabled bigint NOT NULL, changed_at_ms bigint NOT NULL, content_prefix text
);
CREATE TABLE shard_0.admin_tokens ( id text NOT NULL, name text NOT NULL COLLATE pg_catalog."C", digest text NOT NULL, role text NOT NULL, boxes text, created_at_ms bigint NOT NULL, created_by text NOT NULL, last_used_at_ms bigint, revoked_at_ms bigint
);
CREATE TABLE shard_0.audit ( seq bigint NOT NULL, at_ms bigint NOT NULL, who text NOT NULL, what text NOT NULL, target text NOT NULL, detail text NOT NULL, address text
);
CREATE TABLE shard_0.box_secrets ( terminal_code text NOT NULL, serial_number text NOT NULL, secret text NOT NULL, enrolled_at_ms bigint NOT NULL, wrapped bigint DEFAULT 0 NOT NULL
);
CREATE TABLE shard_0.boxes ( terminal_code text NOT NULL COLLATE pg_catalog."C", serial_number text NOT NULL COLLATE pg_catalog."C", account text COLLATE pg_catalog."C", dialect text NOT NULL, mac_addr text COLLATE pg_catalog."C", confirm text, secret text, managed text NOT NULL, disabled bigint NOT NULL, changed_at_ms bigint NOT NULL
);
CREATE TABLE shard_0.callback_attempts ( id text NOT NULL, callback_id text NOT NULL, request_headers text NOT NULL, response_body text, error text, seq bigint NOT NULL, by_hand bigint NOT NULL, started_at_ms bigint NOT NULL, duration_ms bigint NOT NULL, response_status bigint
);
CREATE TABLE shard_0.callbacks ( id text NOT NULL, payment_id text NOT NULL, partner text NOT NULL, url text NOT NULL, body text NOT NULL, status text NOT NULL, warning text, seq bigint NOT NULL, tries bigint NOT NULL, next_at_ms bigint NOT NULL, created_at_ms bigint NOT NULL, checksum text
);
CREATE TABLE shard_0.credits ( id text NOT NULL, source text NOT NULL, source_id text NOT NULL, reference text NOT NULL, bank_account text NOT NULL, virtual_account text NOT NULL, text text NOT NULL, seq bigint NOT NULL, amount bigint NOT NULL, bank_time_ms bigint NOT NULL, received_at_ms bigint NOT NULL, late bigint NOT NULL, payment_id text, order_amount bigint, order_paid bigint, checksum text
);
CREATE TABLE shard_0.damaged_rows ( table_name text NOT NULL, name text, content text NOT NULL
);
CREATE TABLE shard_0.enrolment_requests ( id text NOT NULL, terminal_code text NOT NULL, serial_number text NOT NULL, public_key text NOT NULL, proof text NOT NULL, address text NOT NULL, asked_at_ms bigint NOT NULL
);
CREATE TABLE shard_0.known_logins ( digest text NOT NULL, seq bigint NOT NULL
);
CREATE TABLE shard_0.kysely_migration ( name character varying(255) NOT NULL, "timestamp" character varying(255) NOT NULL
);
CREATE TABLE shard_0.kysely_migration_lock ( id character varying(255) NOT NULL, is_locked integer DEFAULT 0 NOT NULL
);
CREATE TABLE shard_0.ledger ( name text NOT NULL, end_seq bigint NOT NULL, end_link text NOT NULL, pruned_seq bigint NOT NULL, pruned_link text NOT NULL, pruned_count bigint NOT NULL, checksum text
);
CREATE TABLE shard_0.notices ( payment_id text NOT NULL, terminal_code text NOT NULL, push_id text, created_at_ms bigint NOT NULL, reported_at_ms bigint, recorded bigint, told_at_ms bigint, checksum text, late bigint DEFAULT 0 NOT NULL
);
CREATE TABLE shard_0.order_codes ( bank_account text NOT NULL, code text NOT NULL, order_ref text NOT NULL, created_at_ms bigint NOT NULL, checksum text
);
CREATE TABLE shard_0.orders ( id text NOT NULL, partner text NOT NULL, order_id text NOT NULL, bank_account text NOT NULL, bank_code text NOT NULL, user_bank_name text NOT NULL, content text NOT NULL, trans_type text NOT NULL, qr_code text NOT NULL, terminal_code text NOT NULL, sub_terminal_code text NOT NULL, service_code text NOT NULL, sign text NOT NULL, url_link text NOT NULL, status text NOT NULL, failure text, last_push_id text, shown_on text, shown_push_id text, seq bigint NOT NULL, amount bigint NOT NULL, created_at_ms bigint NOT NULL, updated_at_ms bigint NOT NULL, paid_at_ms bigint, checksum text
);
CREATE TABLE shard_0.partners ( username text NOT NULL COLLATE pg_catalog."C", password text, callback text, managed text NOT NULL, disabled bigint NOT NULL, changed_at_ms bigint NOT NULL
);
CREATE TABLE shard_0.payment_requests ( source text NOT NULL, order_ref text NOT NULL, bank_account text NOT NULL, virtual_account text NOT NULL, order_code bigint NOT NULL, created_at_ms bigint NOT NULL, expires_at_ms bigint NOT NULL, ended_at_ms bigint, closed_at_ms bigint, checksum text
);
CREATE TABLE shard_0.payments ( id text NOT NULL, partner text NOT NULL, order_ref text, order_id text NOT NULL, reference_number text NOT NULL, bank_account text NOT NULL, bank_code text NOT NULL, content text NOT NULL, trans_type text NOT NULL, seq bigint NOT NULL, amount bigint NOT NULL, paid_at_ms bigint NOT NULL, link text, checksum text
);
CREATE TABLE shard_0.pushes ( id text NOT NULL, order_ref text NOT NULL, terminal_code text NOT NULL, status text NOT NULL, code text, seq bigint NOT NULL, created_at_ms bigint NOT NULL, expires_at_ms bigint NOT NULL, confirmed_at_ms bigint, ended_at_ms bigint, checksum text
);
CREATE TABLE shard_0.qr_codes ( ref text NOT NULL, qr_code text NOT NULL, created_at_ms bigint NOT NULL
);
CREATE TABLE shard_0.sales ( order_ref text NOT NULL, created_at_ms bigint NOT NULL, sold_by text
);
CREATE TABLE shard_0.settings ( name text NOT NULL, value text NOT NULL
);
CREATE TABLE shard_0.sources ( name text NOT NULL COLLATE pg_catalog."C", kind text NOT NULL, options text, managed text NOT NULL, disabled bigint NOT NULL, changed_at_ms bigint NOT NULL
);
ALTER TABLE ONLY shard_0.accounts ADD CONSTRAINT accounts_pkey PRIMARY KEY (bank_account);
ALTER TABLE ONLY shard_0.admin_tokens ADD CONSTRAINT admin_tokens_pkey PRIMARY KEY (id);
ALTER TABLE ONLY shard_0.audit ADD CONSTRAINT audit_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY shard_0.box_secrets ADD CONSTRAINT box_secrets_pkey PRIMARY KEY (terminal_code);
ALTER TABLE ONLY shard_0.boxes ADD CONSTRAINT boxes_pkey PRIMARY KEY (terminal_code);
ALTER TABLE ONLY shard_0.callback_attempts ADD CONSTRAINT callback_attempts_key PRIMARY KEY (id);
ALTER TABLE ONLY shard_0.callbacks ADD CONSTRAINT callbacks_key PRIMARY KEY (id);
ALTER TABLE ONLY shard_0.credits ADD CONSTRAINT credits_key PRIMARY KEY (id);
ALTER TABLE ONLY shard_0.enrolment_requests ADD CONSTRAINT enrolment_requests_pkey PRIMARY KEY (id);
ALTER TABLE ONLY shard_0.known_logins ADD CONSTRAINT known_logins_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY shard_0.kysely_migration_lock ADD CONSTRAINT kysely_migration_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY shard_0.kysely_migration ADD CONSTRAINT kysely_migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY shard_0.ledger ADD CONSTRAINT ledger_pkey PRIMARY KEY (name);
ALTER TABLE ONLY shard_0.notices ADD CONSTRAINT notices_key PRIMARY KEY (payment_id, terminal_code);
ALTER TABLE ONLY shard_0.order_codes ADD CONSTRAINT order_codes_key PRIMARY KEY (bank_account, code);
ALTER TABLE ONLY shard_0.orders ADD CONSTRAINT orders_key PRIMARY KEY (id);
ALTER TABLE ONLY shard_0.partners ADD CONSTRAINT partners_pkey PRIMARY KEY (username);
ALTER TABLE ONLY shard_0.payment_requests ADD CONSTRAINT payment_requests_key PRIMARY KEY (source, order_code);
ALTER TABLE ONLY shard_0.payments ADD CONSTRAINT payments_key PRIMARY KEY (id);
ALTER TABLE ONLY shard_0.pushes ADD CONSTRAINT pushes_key PRIMARY KEY (id);
ALTER TABLE ONLY shard_0.qr_codes ADD CONSTRAINT qr_codes_key PRIMARY KEY (ref);
ALTER TABLE ONLY shard_0.sales ADD CONSTRAINT sales_key PRIMARY KEY (order_ref);
ALTER TABLE ONLY shard_0.settings ADD CONSTRAINT settings_key PRIMARY KEY (name);
ALTER TABLE ONLY shard_0.sources ADD CONSTRAINT sources_pkey PRIMARY KEY (name);
CREATE INDEX accounts_of_file ON shard_0.accounts USING btree (bank_account) WHERE (managed = 'file'::text);
CREATE INDEX accounts_of_partner ON shard_0.accounts USING btree (partner, bank_account);
CREATE UNIQUE INDEX admin_tokens_by_digest ON shard_0.admin_tokens USING btree (digest);
CREATE UNIQUE INDEX admin_tokens_by_name ON shard_0.admin_tokens USING btree (name) WHERE (revoked_at_ms IS NULL);
CREATE INDEX admin_tokens_by_spelling ON shard_0.admin_tokens USING btree (lower(name));
CREATE INDEX admin_tokens_revoked ON shard_0.admin_tokens USING btree (revoked_at_ms) WHERE (revoked_at_ms IS NOT NULL);
CREATE INDEX attempts_by_callback ON shard_0.callback_attempts USING btree (callback_id, seq);
CREATE INDEX audit_of_target ON shard_0.audit USING btree (target, seq);
CREATE INDEX box_secrets_plain ON shard_0.box_secrets USING btree (terminal_code) WHERE (wrapped = 0);
CREATE UNIQUE INDEX boxes_by_mac ON shard_0.boxes USING btree (mac_addr);
CREATE UNIQUE INDEX boxes_by_serial ON shard_0.boxes USING btree (serial_number);
CREATE INDEX boxes_of_account ON shard_0.boxes USING btree (account, terminal_code);
CREATE INDEX boxes_of_dialect ON shard_0.boxes USING btree (terminal_code) WHERE (dialect <> 'paybox'::text);
CREATE INDEX boxes_of_file ON shard_0.boxes USING btree (terminal_code) WHERE (managed = 'file'::text);
CREATE INDEX boxes_with_secret ON shard_0.boxes USING btree (terminal_code) WHERE (secret IS NOT NULL);
CREATE INDEX callbacks_by_due ON shard_0.callbacks USING btree (status, partner, next_at_ms, seq);
CREATE INDEX callbacks_by_payment ON shard_0.callbacks USING btree (payment_id);
CREATE INDEX callbacks_by_seq ON shard_0.callbacks USING btree (seq);
CREATE INDEX callbacks_never_tried ON shard_0.callbacks USING btree (partner, status, tries, seq) WHERE ((status = 'pending'::text) AND (tries = 0));
CREATE INDEX callbacks_of_status ON shard_0.callbacks USING btree (status, seq);
CREATE INDEX credits_by_seq ON shard_0.credits USING btree (seq);
CREATE INDEX credits_by_time ON shard_0.credits USING btree (amount, bank_time_ms);
CREATE INDEX credits_of_payment ON shard_0.credits USING btree (payment_id);
CREATE INDEX credits_of_reference ON shard_0.credits USING btree (upper(replace(replace(replace(replace(replace(reference, ' '::text, ''::text), '.'::text, ''::text), '-'::text, ''::text), '_'::text, ''::text), '/'::text, ''::text)), amount) WHERE (reference <> ''::text);
CREATE UNIQUE INDEX credits_of_source ON shard_0.credits USING btree (source, source_id, bank_account);
CREATE INDEX enrolment_requests_by_age ON shard_0.enrolment_requests USING btree (asked_at_ms);
CREATE INDEX known_logins_by_seq ON shard_0.known_logins USING btree (seq);
CREATE INDEX notices_by_box ON shard_0.notices USING btree (terminal_code, reported_at_ms);
CREATE INDEX order_codes_of_order ON shard_0.order_codes USING btree (order_ref);
CREATE INDEX orders_by_last_push ON shard_0.orders USING btree (last_push_id);
CREATE INDEX orders_by_order_id ON shard_0.orders USING btree (order_id);
CREATE INDEX orders_by_seq ON shard_0.orders USING btree (seq);
CREATE INDEX orders_of_amount ON shard_0.orders USING btree (bank_account, amount, seq) WHERE (trans_type = 'C'::text);
CREATE INDEX orders_of_code ON shard_0.orders USING btree (substr(content, 1, 13));
CREATE INDEX orders_of_money ON shard_0.orders USING btree (bank_account, amount, content, seq);
CREATE INDEX orders_of_qr ON shard_0.orders USING btree (qr_code, order_id, seq);
CREATE INDEX orders_unpaid ON shard_0.orders USING btree (bank_account, amount, content, seq) WHERE (status <> 'paid'::text);
CREATE INDEX partners_of_file ON shard_0.partners USING btree (username) WHERE (managed = 'file'::text);
CREATE INDEX payment_requests_of_account ON shard_0.payment_requests USING btree (virtual_account);
CREATE INDEX payment_requests_of_order ON shard_0.payment_requests USING btree (order_ref);
CREATE INDEX payment_requests_open ON shard_0.payment_requests USING btree (source, created_at_ms) WHERE (closed_at_ms IS NULL);
CREATE INDEX payments_by_reference ON shard_0.payments USING btree (reference_number);
CREATE INDEX payments_by_seq ON shard_0.payments USING btree (seq);
CREATE INDEX payments_of_order ON shard_0.payments USING btree (order_ref, seq);
CREATE INDEX pushes_by_expiry ON shard_0.pushes USING btree (status, expires_at_ms);
CREATE INDEX pushes_by_seq ON shard_0.pushes USING btree (seq);
CREATE INDEX pushes_of_box ON shard_0.pushes USING btree (terminal_code, seq);
CREATE INDEX pushes_of_order ON shard_0.pushes USING btree (order_ref, seq);
CREATE INDEX pushes_unended ON shard_0.pushes USING btree (terminal_code, seq) WHERE (ended_at_ms IS NULL);
CREATE INDEX qr_codes_by_age ON shard_0.qr_codes USING btree (created_at_ms, ref);
CREATE INDEX sales_by_time ON shard_0.sales USING btree (created_at_ms);
CREATE INDEX sources_of_file ON shard_0.sources USING btree (name) WHERE (managed = 'file'::text);
CREATE TRIGGER callbacks_checksum BEFORE INSERT OR UPDATE ON shard_0.callbacks FOR EACH ROW EXECUTE FUNCTION shard_0.callbacks_checksum();
CREATE TRIGGER credits_checksum BEFORE INSERT OR UPDATE ON shard_0.credits FOR EACH ROW EXECUTE FUNCTION shard_0.credits_checksum();
CREATE TRIGGER ledger_checksum BEFORE INSERT OR UPDATE ON shard_0.ledger FOR EACH ROW EXECUTE FUNCTION shard_0.ledger_checksum();
CREATE TRIGGER notices_checksum BEFORE INSERT OR UPDATE ON shard_0.notices FOR EACH ROW EXECUTE FUNCTION shard_0.notices_checksum();
CREATE TRIGGER order_codes_checksum BEFORE INSERT OR UPDATE ON shard_0.order_codes FOR EACH ROW EXECUTE FUNCTION shard_0.order_codes_checksum();
CREATE TRIGGER orders_checksum BEFORE INSERT OR UPDATE ON shard_0.orders FOR EACH ROW EXECUTE FUNCTION shard_0.orders_checksum();
CREATE TRIGGER payment_requests_checksum BEFORE INSERT OR UPDATE ON shard_0.payment_requests FOR EACH ROW EXECUTE FUNCTION shard_0.payment_requests_checksum();
CREATE TRIGGER payments_checksum BEFORE INSERT OR UPDATE ON shard_0.payments FOR EACH ROW EXECUTE FUNCTION shard_0.payments_checksum();
CREATE TRIGGER pushes_checksum BEFORE INSERT OR UPDATE ON shard_0.pushes FOR EACH ROW EXECUTE FUNCTION shard_0.pushes_checksum();
