# Runs the programs in a folder: wrong arguments, and results that OpenSSL and Python check. check.sh FOLDER
set -eu
bin=$1
key=../../tests/keys/rsa2048-pkcs8.pem
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
public=$dir/public
openssl pkey -in "$key" -pubout -out "$public"
printf message > "$dir/message"

# Schemes of the header, to be added up.
sha256=2 pkcs1v15=16 pss=32 prehashed=256

openssl pkcs8 -topk8 -in "$key" -passout 'pass:correct horse' -out "$dir/encrypted"
"$bin/hostile" "$key" "$dir/encrypted"
# A request that is never answered ends the test.
for program in hostile_queue hostile_queue-plain; do
  timeout 600 "$bin/$program" "$key"
done
echo "wrong arguments are errors"

# noticed MISTAKE REPORT: AddressSanitizer ends the program and says why.
noticed() {
  if "$bin/control" "$1" "$key" 2> "$dir/report" || ! grep -q "$2" "$dir/report"; then
    cat "$dir/report"
    echo "AddressSanitizer does not notice: $1" >&2
    exit 1
  fi
}
noticed leak 'LeakSanitizer: detected memory leaks'
noticed write 'AddressSanitizer: heap-buffer-overflow'
noticed read 'AddressSanitizer: heap-buffer-overflow'

# verified OPTIONS: OpenSSL accepts the signature of the message.
verified() {
  openssl dgst "$@" -verify "$public" -signature "$dir/signature" "$dir/message"
}

# verdict SCHEME STATUS: what bme_verify says of the signature and the digest.
verdict() {
  [ "$("$bin/interop" verify "$public" "$1" "$dir/signature" < "$dir/digest")" = "$2" ]
}

# signatures SCHEME HASH OPTIONS: of the message, and of its digest.
signatures() {
  scheme=$1
  openssl dgst "$2" -binary "$dir/message" > "$dir/digest"
  shift
  "$bin/interop" sign "$key" $((scheme + prehashed)) < "$dir/digest" > "$dir/signature"
  verified "$@"
  "$bin/sign_file" "$key" "$dir/message" "$dir/signature" "$scheme"
  verified "$@"
  verdict $((scheme + prehashed)) 0
  printf xxxx | dd of="$dir/digest" conv=notrunc status=none
  verdict $((scheme + prehashed)) 5
}
for bits in 256 384 512; do
  hash=$((bits / 128))
  signatures $((pkcs1v15 + hash)) -sha$bits
  signatures $((pss + hash)) -sha$bits -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest
done
hash=5
for name in sha224 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512; do
  signatures $((pkcs1v15 + hash)) -$name
  signatures $((pss + hash)) -$name -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest
  hash=$((hash + 1))
done
# A key that is unfit for the scheme gives no verdict: one for PSS only, one too short for SHA-512.
openssl pkey -in ../../tests/keys/rsa1024.pem -pubout -out "$dir/short"
head -c 128 /dev/zero > "$dir/signature"
# status KEY SCHEME STATUS: what bme_verify says of the signature and the message.
status() {
  [ "$("$bin/interop" verify "$1" "$2" "$dir/signature" < "$dir/message")" = "$3" ]
}
status ../../tests/keys/pss-public.pem $((pkcs1v15 + sha256)) 3
status "$dir/short" $((pss + 4)) 3
status "$dir/short" $((pss + sha256)) 5
if "$bin/sign_file" "$dir/message" "$dir/message" "$dir/signature" $((pss + sha256)) 2> "$dir/error"; then
  echo "a message is no key" >&2
  exit 1
fi
grep -q . "$dir/error"

# The event loop: with sanitizers, and as C++ with the shared library.
for program in event_loop event_loop-shared; do
  LD_LIBRARY_PATH=$bin/root/opt/lib timeout 600 "$bin/$program" "$key" 600 "$dir/signature"
  printf 'message 0' | openssl dgst -sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest \
    -verify "$public" -signature "$dir/signature"
done

# decrypted SCHEME MGF-HASH LABEL: the message of the ciphertext is the message.
decrypted() {
  "$bin/interop" decrypt "$key" "$@" < "$dir/ciphertext" 2> "$dir/status" | cmp - "$dir/message"
  grep -qx 0 "$dir/status"
}

# encryption SCHEME MGF-HASH LABEL OPTIONS: OpenSSL decrypts, and is decrypted.
encryption() {
  scheme=$1 mgf=$2 label=$3
  shift 3
  openssl pkeyutl -encrypt -pubin -inkey "$public" "$@" -in "$dir/message" -out "$dir/ciphertext"
  decrypted "$scheme" "$mgf" "$label"
  "$bin/interop" encrypt "$public" "$scheme" "$mgf" "$label" < "$dir/message" > "$dir/ciphertext"
  openssl pkeyutl -decrypt -inkey "$key" "$@" -in "$dir/ciphertext" | cmp - "$dir/message"
}

# oaep SCHEME MGF-HASH HASHES: a label is a hexadecimal number for OpenSSL.
oaep() {
  encryption "$1" "$2" label -pkeyopt rsa_padding_mode:oaep -pkeyopt "rsa_oaep_md:$3" -pkeyopt "rsa_mgf1_md:$4" \
    -pkeyopt rsa_oaep_label:6c6162656c
  "$bin/interop" decrypt "$key" "$1" "$2" another < "$dir/ciphertext" 2>&1 | grep -qx 6
}
oaep 49 0 sha1 sha1
oaep 50 0 sha256 sha256
oaep 50 1 sha256 sha1
oaep 51 4 sha384 sha512
oaep 52 2 sha512 sha256
oaep 53 7 sha224 sha512-256
oaep 54 10 sha512-224 sha3-384
oaep 56 11 sha3-224 sha3-512
oaep 57 5 sha3-256 sha224
oaep 55 8 sha512-256 sha3-224
oaep 58 6 sha3-384 sha512-224
oaep 59 9 sha3-512 sha3-256
# Wrong padding of PKCS #1 v1.5 gives a made-up message, the same each time.
for i in 1 2; do
  "$bin/interop" decrypt "$key" $pkcs1v15 0 '' < "$dir/ciphertext" > "$dir/made-up$i" 2> "$dir/status"
  grep -qx 0 "$dir/status"
done
cmp "$dir/made-up1" "$dir/made-up2"
encryption $pkcs1v15 0 '' -pkeyopt rsa_padding_mode:pkcs1
echo "encryption agrees with OpenSSL's"

openssl pkey -in "$key" -pubout -outform DER -out "$dir/public.der"
"$bin/interop" public "$key" | cmp - "$dir/public.der"
for bits in 1024 2048; do
  "$bin/interop" generate $bits > "$dir/generated"
  openssl rsa -inform DER -in "$dir/generated" -check -noout
  openssl rsa -inform DER -in "$dir/generated" -text -noout | grep "($bits bit"
done

# Keys of three, five and eight numbers: n, e, d, p, q, dP, dQ, qInv, which are in this order in RSAPrivateKey.
openssl dgst -sha256 -binary "$dir/message" > "$dir/digest"
openssl rsa -in "$key" -traditional -outform DER -out "$dir/pkcs1"
openssl asn1parse -inform DER -in "$dir/pkcs1" | sed -n 's/.*INTEGER *://p' | sed 1d > "$dir/parts"
[ "$(wc -l < "$dir/parts")" = 8 ]
for count in 3 5 8; do
  # shellcheck disable=SC2046
  "$bin/interop" numbers $(head -n $count "$dir/parts") < "$dir/digest" > "$dir/signature"
  verified -sha256
done

python3 tests/powers.py > "$dir/numbers"
for program in powmod powmod-shared; do
  LD_LIBRARY_PATH=$bin/root/opt/lib "$bin/$program" < "$dir/numbers" > "$dir/powers"
  python3 tests/powers.py "$dir/numbers" pow | cmp - "$dir/powers"
done
"$bin/interop" multiply < "$dir/numbers" > "$dir/products"
python3 tests/powers.py "$dir/numbers" mul | cmp - "$dir/products"
echo "powers and products agree with Python's"

# Without AddressSanitizer, which takes addresses that the NVIDIA driver needs.
LD_LIBRARY_PATH=$bin/root/opt/lib "$bin/gpus-shared" "$key"
