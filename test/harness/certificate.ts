/** A certificate that nobody should trust, for a server that has to speak TLS: made anew each time, so that no key lies about. */
import { generateKeyPairSync, sign } from 'node:crypto';

/** Key and certificate in PEM, valid for ten years before and after 2030. */
export function selfSigned(): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = sequence(set(sequence(oid('550403'), element(0x0c, Buffer.from('127.0.0.1')))));
  const algorithm = sequence(oid('2a8648ce3d040302')); // ecdsa-with-SHA256
  const toBeSigned = sequence(
    element(0xa0, integer(2)),
    integer(1),
    algorithm,
    name,
    sequence(time('200101000000Z'), time('400101000000Z')),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
  );
  const signature = element(0x03, Buffer.concat([Buffer.of(0), sign('sha256', toBeSigned, privateKey)]));
  const certificate = sequence(toBeSigned, algorithm, signature).toString('base64');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${certificate}\n-----END CERTIFICATE-----\n`,
  };
}

/** One element of DER: its tag, its length, its content. */
function element(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = (...parts: Buffer[]) => element(0x30, Buffer.concat(parts));
const set = (part: Buffer) => element(0x31, part);
const integer = (value: number) => element(0x02, Buffer.of(value));
const oid = (hex: string) => element(0x06, Buffer.from(hex, 'hex'));
const time = (text: string) => element(0x17, Buffer.from(text));
