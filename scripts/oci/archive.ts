/**
 * This script packs an OCI image as one archive: the layout of the image specification, and the list by which `docker
 * load` reads it.
 */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { Architecture } from '../tools.ts';
import { DATA, HEALTH_PROGRAM, type Layer, USER } from './root.ts';
import { type TarEntry, tarBlocks, writeTar } from './tar.ts';

const SECOND_NS = 1_000_000_000;

export interface ImageOptions {
  architecture: Architecture;
  version: string;
  /** The commit from which the image is made; undefined if it is not known. */
  revision: string | undefined;
  epochSeconds: number;
}

interface Blob {
  mediaType: string;
  digest: string;
  size: number;
}

/**
 * Writes the archive to `file`. The same layers and options give the same bytes. Returns the digest of the manifest.
 * @throws the system's error.
 */
export async function writeArchive(file: string, layers: readonly Layer[], options: ImageOptions): Promise<string> {
  const { architecture, version, epochSeconds } = options;
  const entries: TarEntry[] = [];
  const add = (path: string, content: Uint8Array) => entries.push({ path, mode: 0o644, content });
  const blob = (mediaType: string, content: Uint8Array): Blob => {
    const hash = sha256(content);
    add(`blobs/sha256/${hash}`, content);
    return { mediaType, digest: `sha256:${hash}`, size: content.length };
  };
  const packed = layers.map((layer) => {
    const tar = Buffer.concat([...tarBlocks(layer.entries, epochSeconds)]);
    const diffId = `sha256:${sha256(tar)}`;
    return { diffId, blob: blob('application/vnd.oci.image.layer.v1.tar+gzip', gzipSync(tar, { level: 6 })) };
  });
  const diffIds = packed.map(({ diffId }) => diffId);
  const config = blob('application/vnd.oci.image.config.v1+json', json(imageConfig(layers, diffIds, options)));
  const manifest = blob(
    'application/vnd.oci.image.manifest.v1+json',
    json({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config,
      layers: packed.map((layer) => layer.blob),
      annotations: labels(options),
    }),
  );
  const name = `paybox:${version}`;
  const annotations = { 'org.opencontainers.image.ref.name': version, 'io.containerd.image.name': name };
  add('oci-layout', json({ imageLayoutVersion: '1.0.0' }));
  add(
    'index.json',
    json({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.index.v1+json',
      manifests: [{ ...manifest, platform: platform(architecture), annotations }],
    }),
  );
  const path = ({ digest }: Blob) => `blobs/sha256/${digest.slice('sha256:'.length)}`;
  add(
    'manifest.json',
    json([{ Config: path(config), RepoTags: [name], Layers: packed.map((layer) => path(layer.blob)) }]),
  );
  const folders = ['blobs', 'blobs/sha256'].map((folder) => ({ path: folder, mode: 0o755 }));
  await writeTar(file, [...folders, ...entries], epochSeconds);
  return manifest.digest;
}

function imageConfig(layers: readonly Layer[], diffIds: readonly string[], options: ImageOptions): object {
  const created = new Date(options.epochSeconds * 1000).toISOString();
  return {
    created,
    ...platform(options.architecture),
    config: {
      User: `${USER}:${USER}`,
      ExposedPorts: { '8800/tcp': {}, '8810/tcp': {} },
      // The compile cache is in HOME.
      Env: ['PATH=/usr/bin', `HOME=${DATA}`],
      Entrypoint: ['/usr/bin/paybox'],
      Cmd: ['up'],
      Volumes: { [DATA]: {} },
      WorkingDir: DATA,
      Labels: labels(options),
      StopSignal: 'SIGTERM',
      // The specification does not have this, but engines read it.
      Healthcheck: {
        Test: ['CMD', '/usr/lib/paybox/node', HEALTH_PROGRAM],
        Interval: 30 * SECOND_NS,
        Timeout: 5 * SECOND_NS,
        StartPeriod: 20 * SECOND_NS,
        Retries: 3,
      },
    },
    rootfs: { type: 'layers', diff_ids: diffIds },
    history: layers.map(({ name }) => ({ created, created_by: name })),
  };
}

function labels({ version, revision, epochSeconds }: ImageOptions): Record<string, string> {
  return {
    'org.opencontainers.image.title': 'paybox',
    'org.opencontainers.image.description':
      'A mock of the payment QR service, an emulated payment QR box, and a bench.',
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.licenses': 'MIT',
    'org.opencontainers.image.created': new Date(epochSeconds * 1000).toISOString(),
    ...(revision !== undefined && { 'org.opencontainers.image.revision': revision }),
  };
}

function platform(architecture: Architecture): object {
  return { architecture, os: 'linux', ...(architecture === 'arm64' && { variant: 'v8' }) };
}

function sha256(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

function json(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}
