CREATE SCHEMA cluster;
CREATE FUNCTION cluster.tell(told text) RETURNS void
    LANGUAGE plpgsql
    AS $$ begin
    -- In their order: whoever has read a number has read all before it.
    perform pg_advisory_xact_lock(7024118266);
    delete from cluster.news where told_at < clock_timestamp() - interval '3600000 ms';
    insert into cluster.news (told_at, text) values (clock_timestamp(), told);
    perform pg_notify('paybox_cluster', 'news');
  end $$;
CREATE UNLOGGED TABLE cluster.holders (
    shard integer NOT NULL,
    member text NOT NULL
);
CREATE UNLOGGED TABLE cluster.members (
    id text NOT NULL,
    url text NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    leaving boolean NOT NULL,
    file text NOT NULL,
    alike jsonb DEFAULT '{}'::jsonb NOT NULL,
    ahead_ms double precision
);
CREATE TABLE cluster.news (
    seq integer NOT NULL,
    told_at timestamp with time zone NOT NULL,
    text text NOT NULL
);
ALTER TABLE cluster.news ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cluster.news_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE cluster.settings (
    one integer NOT NULL,
    shards integer NOT NULL,
    secret text NOT NULL,
    generation text DEFAULT ''::text NOT NULL,
    CONSTRAINT settings_one_check CHECK ((one = 1))
);
INSERT INTO cluster.news OVERRIDING SYSTEM VALUE VALUES (1, '2026-11-26 14:22:24.333127+00', '{"about":"registry"}');
INSERT INTO cluster.news OVERRIDING SYSTEM VALUE VALUES (2, '2026-11-26 14:22:26.520854+00', '{"about":"registry"}');
INSERT INTO cluster.settings VALUES (1, 3, 'pE22zzX5MBC2hTQAOIX-RAjy-Z3U2TYBWu5c7MLWEcw', '');
SELECT pg_catalog.setval('cluster.news_seq_seq', 2, true);
ALTER TABLE ONLY cluster.holders
    ADD CONSTRAINT holders_pkey PRIMARY KEY (shard);
ALTER TABLE ONLY cluster.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (id);
ALTER TABLE ONLY cluster.news
    ADD CONSTRAINT news_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY cluster.settings
    ADD CONSTRAINT settings_pkey PRIMARY KEY (one);
